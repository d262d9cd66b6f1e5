-- Notes in a room's history why a claim won. A claim that lost notes nothing, a repeated one nothing more.
local pin, history = KEYS[1], KEYS[2]
local claimed, change, lastKept, historySeconds = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('GET', pin) ~= claimed then return end
local last = redis.call('LINDEX', history, 0)
if last and string.sub(last, -#change) == change then return end
local t = redis.call('TIME')
redis.call('LPUSH', history, string.format('%.0f', tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)) .. '|' .. change)
redis.call('LTRIM', history, 0, lastKept)
redis.call('EXPIRE', history, historySeconds)
