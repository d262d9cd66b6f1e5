-- Takes, keeps or gives back the lease of the sender of webhooks, and says that webhooks are wanted. Returns 1 if the
-- caller has the lease.
local wanted, lease = KEYS[1], KEYS[2]
local sender, milliseconds, wantedSeconds = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local holder = redis.call('GET', lease)
if milliseconds == 0 then
  if holder == sender then redis.call('DEL', lease) end
  return 0
end
redis.call('SET', wanted, '1', 'EX', wantedSeconds)
if holder and holder ~= sender then return 0 end
redis.call('SET', lease, sender, 'PX', milliseconds)
return 1
