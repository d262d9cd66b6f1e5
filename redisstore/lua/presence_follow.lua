-- Returns the log since a cursor, which is the birth of the shard and a version of its log: the next cursor and the lines.
-- False in place of the lines means a gap: the shard was born again, or the log is too short.
local head, log = KEYS[1], KEYS[2]
local born, seen = ARGV[1], tonumber(ARGV[2])
local now = redis.call('HMGET', head, 'born', 'version')
if not now[1] then return {'0', 0, false} end
local version = tonumber(now[2])
local n = version - seen
if now[1] ~= born or n < 0 or n > redis.call('LLEN', log) then return {now[1], version, false} end
if n == 0 then return {now[1], version, {}} end
return {now[1], version, redis.call('LRANGE', log, -n, -1)}
