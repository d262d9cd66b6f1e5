-- Returns the state of the users in ARGV: 1 if the shard is old enough to know who is offline, each user's connections,
-- and when each was last seen.
local head, users, seen = KEYS[1], KEYS[2], KEYS[3]
local t = redis.call('TIME')
local from = tonumber(redis.call('HGET', head, 'from') or '')
local settled = from and t[1] * 1000 + math.floor(t[2] / 1000) >= from
return {settled and 1 or 0, redis.call('HMGET', users, unpack(ARGV)), redis.call('ZMSCORE', seen, unpack(ARGV))}
