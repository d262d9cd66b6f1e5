-- Returns the time in milliseconds that a process takes into its boot id: after every earlier one of its name. The key lives until the
-- store's clock is past it for as long as a pin lives, after which the clock alone is enough.
local boot = KEYS[1]
local atLeast, keptMilliseconds = tonumber(ARGV[1]), tonumber(ARGV[2])

local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
if redis.call('TYPE', boot).ok ~= 'string' then redis.call('DEL', boot) end
local last = tonumber(redis.call('GET', boot) or 0) or 0
local began = math.max(atLeast, now, last + 1)
local text = string.format('%.0f', began)
redis.call('SET', boot, text, 'PX', string.format('%.0f', began - now + keptMilliseconds))
return text
