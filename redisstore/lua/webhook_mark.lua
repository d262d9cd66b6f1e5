-- Marks rooms that may have something for the receivers of webhooks, by the store's clock.
local t = redis.call('TIME')
local now = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
for i = 1, #ARGV do redis.call('ZADD', KEYS[1], now, ARGV[i]) end
return now
