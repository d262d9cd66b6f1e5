-- Replaces or deletes a room's pin if the current text is the expected one: the compare-and-set of every move.
-- Returns the store's time in microseconds, 1 if the request came too late, and the current text (false: no pin).
local pin, roster, door, history = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local old, new, pinSeconds = ARGV[1], ARGV[2], ARGV[3]
local latest = tonumber(ARGV[4]) -- microseconds; 0: no limit
local wrongType, orphanSeconds = ARGV[5], ARGV[6]
local change, lastKept, historySeconds = ARGV[7], ARGV[8], ARGV[9]

local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
-- A key of another type has a text of its own, so that it can be repaired.
local stands = redis.pcall('GET', pin)
if type(stands) == 'table' then
  if string.sub(stands.err, 1, 9) ~= 'WRONGTYPE' then return stands end
  stands = wrongType
end
if stands ~= old then return {now, 0, stands} end
-- A server that thaws executes requests whose callers gave up long ago.
if latest > 0 and now > latest then return {now, 1, stands} end

if new == '' then
  redis.call('DEL', pin, roster, history)
  return {now, 0, false}
end
redis.call('SET', pin, new, 'EX', pinSeconds)
-- The roster of the last owner soon expires unless the next owner writes it. With a door it counts for the cap, and
-- lives as long as the pin.
redis.call('EXPIRE', roster, redis.call('EXISTS', door) == 1 and pinSeconds or orphanSeconds)
if redis.call('TYPE', history).ok ~= 'list' then redis.call('DEL', history) end
redis.call('LPUSH', history, string.format('%.0f', math.floor(now / 1000)) .. '|' .. change)
redis.call('LTRIM', history, 0, lastKept)
redis.call('EXPIRE', history, historySeconds)
return {now, 0, new}
