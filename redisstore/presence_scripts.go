package redisstore

// See people/presence/DESIGN.md. Each script is for one shard: KEYS = head, leases, users, seen, log, gone. Times are
// milliseconds of the store's clock.

// presencePrelude begins writing scripts; ARGV[1] is the TTL. A shard without a head evicts nobody for a TTL.
const presencePrelude = `
local t = redis.call('TIME')
local micros = t[1] * 1000000 + t[2]
local now = math.floor(micros / 1000)
local head, leases, users, seen, log, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local ttl = tonumber(ARGV[1])
local from = tonumber(redis.call('HGET', head, 'from') or '')
if not from then
  from = now + ttl
  redis.call('HSET', head, 'born', string.format('%.0f', micros), 'version', 0, 'swept', now, 'from', from)
end
local function say(sign, at, user)
  redis.call('HINCRBY', head, 'version', 1)
  redis.call('RPUSH', log, sign .. string.format('%.0f', at) .. ' ' .. user)
end
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
-- recall has times that are ahead of the clock, as of one that was set back, count from now on; so many at once.
local function recall(set)
  local ahead = redis.call('ZRANGEBYSCORE', set, '(' .. now + ttl, '+inf', 'LIMIT', 0, 200)
  for _, one in ipairs(ahead) do redis.call('ZADD', set, now, one) end
  return #ahead
end
-- bury keeps who left out for some TTLs, and as long as somebody tries to bring the connection back.
local function bury(lease)
  redis.call('ZADD', gone, now, lease)
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', now - 4 * ttl)
  redis.call('ZREMRANGEBYRANK', gone, 0, -12001)
  redis.call('PEXPIRE', gone, 4 * ttl)
end
`

// addScript: ARGV[2...] = user, connection, room, since, and so on. A node's since counts only in a young memory. It
// adds no removed connection, and none above 32 KiB a user.
const addScript = presencePrelude + `
local function add(user, conn, room, since)
  local packed, line = redis.call('HGET', users, user), '\n' .. conn .. '\t' .. room
  if not packed then
    redis.call('HSET', users, user, string.format('%.0f', since) .. line)
    redis.call('ZREM', seen, user)
    say('+', since, user)
    return true
  end
  local at, rest = string.match(packed, '^([^\n]*)(.*)$')
  local from, to = where(rest, conn)
  if from then
    rest = string.sub(rest, 1, from - 1) .. line .. string.sub(rest, to)
  elseif #rest < 32768 then
    rest = rest .. line
  else
    return false
  end
  redis.call('HSET', users, user, string.format('%.0f', math.min(tonumber(at), since)) .. rest)
  return true
end
for i = 2, #ARGV, 4 do
  local since, lease = tonumber(ARGV[i + 3]), ARGV[i] .. '\n' .. ARGV[i + 1]
  if now >= from or since <= 0 or since > now then since = now end
  if redis.call('ZSCORE', gone, lease) then
    bury(lease)
  elseif add(ARGV[i], ARGV[i + 1], ARGV[i + 2], since) then
    redis.call('ZADD', leases, now, lease)
  end
end
trim()
return #ARGV`

// removeScript: ARGV[2...] = leases.
const removeScript = presencePrelude + `
for i = 2, #ARGV do
  drop(ARGV[i], now)
  bury(ARGV[i])
end
trim()
return #ARGV`

// sweepScript: ARGV[2] = least time between sweeps, ARGV[3] = the longest gap after which leases are believed. It
// returns how many lapsed or were ahead of the clock, up to 200 each.
const sweepScript = presencePrelude + `
local swept = tonumber(redis.call('HGET', head, 'swept'))
if now < swept or now - swept > tonumber(ARGV[3]) then
  redis.call('HSET', head, 'swept', now, 'from', now + ttl)
  return 0
end
if now - swept < tonumber(ARGV[2]) then return 0 end
local due, ahead = {}, math.max(recall(seen), recall(gone))
if now >= from then
  ahead = math.max(ahead, recall(leases))
  due = redis.call('ZRANGEBYSCORE', leases, '-inf', now - ttl, 'WITHSCORES', 'LIMIT', 0, 200)
end
for i = 1, #due, 2 do drop(due[i], tonumber(due[i + 1])) end
if #due > 0 then trim() end
local most = math.max(#due / 2, ahead)
if most < 200 then redis.call('HSET', head, 'swept', now) end
return most`

// heartbeatScript: KEYS = leases, ARGV = leases. It returns the indices of missing ones.
const heartbeatScript = `
local t = redis.call('TIME')
local now = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
local all, missing = {}, {}
for i, lease in ipairs(ARGV) do
  all[2 * i - 1] = now
  all[2 * i] = lease
end
if redis.call('ZADD', KEYS[1], 'XX', 'CH', unpack(all)) == #ARGV then return missing end
local scores = redis.call('ZMSCORE', KEYS[1], unpack(ARGV))
for i = 1, #ARGV do
  if not scores[i] then missing[#missing + 1] = i end
end
return missing`

// askScript: KEYS = head, users, seen, ARGV = users. It returns whether the shard is settled, the users' lines, and
// when they were last seen.
const askScript = `
local t = redis.call('TIME')
local from = tonumber(redis.call('HGET', KEYS[1], 'from') or '')
local settled = from and t[1] * 1000 + math.floor(t[2] / 1000) >= from
return {settled and 1 or 0, redis.call('HMGET', KEYS[2], unpack(ARGV)), redis.call('ZMSCORE', KEYS[3], unpack(ARGV))}`

// followScript: KEYS = head, log, ARGV = the cursor's born and version. It returns the new cursor and the lines since;
// false: a gap.
const followScript = `
local head = redis.call('HMGET', KEYS[1], 'born', 'version')
if not head[1] then return {'0', 0, false} end
local version = tonumber(head[2])
local n = version - tonumber(ARGV[2])
if head[1] ~= ARGV[1] or n < 0 or n > redis.call('LLEN', KEYS[2]) then return {head[1], version, false} end
if n == 0 then return {head[1], version, {}} end
return {head[1], version, redis.call('LRANGE', KEYS[2], -n, -1)}`
