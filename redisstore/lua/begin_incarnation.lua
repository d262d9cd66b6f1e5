-- Begins an incarnation of the store, unless the marker names this process of Redis already. Returns the marker.
-- A marker changes with an empty server and with another process, because both may lack pins.
local marker = KEYS[1]
local run, nonce, seconds = ARGV[1], ARGV[2], ARGV[3]

local stands = redis.pcall('GET', marker)
if type(stands) == 'string' and string.sub(stands, 1, #run) == run then return stands end
redis.call('SET', marker, run .. nonce, 'EX', seconds)
return run .. nonce
