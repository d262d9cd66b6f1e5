-- Begins each script that writes presence: add, remove, sweep. ARGV[1] is the TTL in milliseconds.
-- Times are milliseconds of the store's clock.
local head, leases, users, seen, log, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local ttl = tonumber(ARGV[1])
local t = redis.call('TIME')
local micros = t[1] * 1000000 + t[2]
local now = math.floor(micros / 1000)

-- A shard without a head is new: the store may have lost it, so nobody is evicted for a TTL.
local from = tonumber(redis.call('HGET', head, 'from') or '')
if not from then
  from = now + ttl
  redis.call('HSET', head, 'born', string.format('%.0f', micros), 'version', 0, 'swept', now, 'from', from)
end

-- say logs that a user came (+) or left (-).
local function say(sign, at, user)
  redis.call('HINCRBY', head, 'version', 1)
  redis.call('RPUSH', log, sign .. string.format('%.0f', at) .. ' ' .. user)
end

-- trim bounds the log, and last-seen times to 30 days and 12,000 users.
local function trim()
  redis.call('LTRIM', log, -4000, -1)
  redis.call('ZREMRANGEBYSCORE', seen, '-inf', now - 2592000000)
  redis.call('ZREMRANGEBYRANK', seen, 0, -12001)
end

-- where finds a connection's line in what is packed after the first line.
local function where(rest, conn)
  local from = string.find(rest, '\n' .. conn .. '\t', 1, true)
  if from then return from, (string.find(rest, '\n', from + 1, true) or #rest + 1) end
end

-- drop takes out a lease. The user leaves with the last lease.
local function drop(lease, at)
  redis.call('ZREM', leases, lease)
  local user, conn = string.match(lease, '^([^\n]*)\n(.*)$')
  local packed = redis.call('HGET', users, user)
  if not packed then return end
  local since, rest = string.match(packed, '^([^\n]*)(.*)$')
  local from, to = where(rest, conn)
  if from then rest = string.sub(rest, 1, from - 1) .. string.sub(rest, to) end
  if rest ~= '' then
    redis.call('HSET', users, user, since .. rest)
    return
  end
  redis.call('HDEL', users, user)
  redis.call('ZADD', seen, at, user)
  say('-', at, user)
end

-- recall gives up to 200 scores that are ahead of the clock the current time, and returns their number. They were
-- written before the clock was set back.
local function recall(set)
  local ahead = redis.call('ZRANGEBYSCORE', set, '(' .. now + ttl, '+inf', 'LIMIT', 0, 200)
  for _, one in ipairs(ahead) do redis.call('ZADD', set, now, one) end
  return #ahead
end

-- bury keeps a connection that left from coming back, for four TTLs after somebody last tried to add it.
local function bury(lease)
  redis.call('ZADD', gone, now, lease)
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', now - 4 * ttl)
  redis.call('ZREMRANGEBYRANK', gone, 0, -12001)
  redis.call('PEXPIRE', gone, 4 * ttl)
end
