-- Adds leases, four arguments each from ARGV[2]: user, connection, room, since. A connection that left is not added.

-- add is false if the user's connections take 32 KiB already.
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
  -- The node's since counts only while the shard is new: then the store may have forgotten the connection.
  if now >= from or since <= 0 or since > now then since = now end
  if redis.call('ZSCORE', gone, lease) then
    bury(lease)
  elseif add(ARGV[i], ARGV[i + 1], ARGV[i + 2], since) then
    redis.call('ZADD', leases, now, lease)
  end
end
trim()
return #ARGV
