-- Notes what a receiver of webhooks has, and drops what all receivers have.
local told, queue = KEYS[1], KEYS[2]
local mine, sent, keepSeconds = ARGV[1], ARGV[2], ARGV[3]

-- Of two senders, one of which has lost the lease, the later position counts.
local was = redis.call('HGET', told, '@sent:' .. mine)
if not was or tonumber(was) < tonumber(sent) then redis.call('HSET', told, '@sent:' .. mine, sent) end
local least = math.huge
for i = 4, #ARGV do least = math.min(least, tonumber(redis.call('HGET', told, '@sent:' .. ARGV[i]) or 0)) end
if least < math.huge then redis.call('XTRIM', queue, 'MINID', string.format('%.0f', least + 1) .. '-0') end
if redis.call('XLEN', queue) == 0 and redis.call('HEXISTS', told, '@sid') == 0 then
  redis.call('DEL', told, queue)
else
  redis.call('EXPIRE', told, keepSeconds)
end
return 1
