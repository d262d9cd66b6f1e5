-- Forgets rooms that have nothing for the receivers of webhooks, unless they were marked within the last minute: their
-- media node may be about to write.
local t = redis.call('TIME')
local oldest = t[1] * 1000 - 60000
for i = 1, #ARGV do
  local marked = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if marked and tonumber(marked) < oldest then redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return 1
