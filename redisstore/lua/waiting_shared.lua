-- Begins each script of a waiting line: enter, check in, door. See people/waitlist/DESIGN.md. Each script is for one room.
-- Times are milliseconds of the store's clock, tickets microseconds.
--
-- A pin is owing until its media node writes its roster (write_roster.lua) or has nobody in the room. Until then the last
-- roster and lapsed reservations count.
-- A memory that is young, or that nobody has checked for a while, lets nobody in or out before `from`: people come back
-- with tickets. A roster that began in this memory 3 s ago shows that a missing door never was. Checks that are always late
-- put `from` off every other time, so that the line of a slow node moves.
-- A time further ahead than a script ever sets one was written before the clock was set back. It is replaced by what this
-- clock would have written, or one wrong clock would shut the room until the right one comes to that time.
local t = redis.call('TIME')
local micros = t[1] * 1000000 + t[2]
local now = math.floor(micros / 1000)
local pinned, roster, door, admitted, line, waiting, names = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local function number(text) return tonumber(text or '') end
local function digits(n) return string.format('%.0f', n) end
local stands = redis.pcall('GET', pinned)
local writer, began = unpack(redis.call('HMGET', roster, '@pin', '@began'))
local pinText = type(stands) == 'string' and stands
local vacant = ARGV[2] ~= '' and (pinText or writer) == ARGV[2] and (ARGV[3] ~= '0' or not writer or writer == pinText)
if vacant and writer and (writer ~= pinText or ARGV[3] == '2') then
  redis.call('DEL', roster)
  writer = false
end
local state = redis.call('HMGET', door, 'cap', 'said', 'closed', 'newest', 'born', 'from', 'hold', 'left', 'checked', 'usual', 'set', 'room')
local described = state[12]
local closed, newest = state[3] == '1', number(state[4]) or 0
local born, from, hold = number(state[5]), number(state[6]) or 0, number(state[7]) or 0
local left, checked = state[8] or '', number(state[9])
local fresh = not born
if fresh then
  born = now
  redis.call('HSET', door, 'born', digits(now))
end
-- settle lets nobody in or out before a time, by default 3 s from now: people come back with tickets.
local function settle(at)
  from = at or now + 3000
  redis.call('HSET', door, 'from', digits(from))
end
if born > now then
  born = now
  redis.call('HSET', door, 'born', digits(now))
end
if from > now + 3000 then settle() end
if hold > now + 60000 then
  hold = 0
  redis.call('HDEL', door, 'hold')
end
local late = checked and now - checked or 0
if late > 3000 and (from <= checked or late > 6000) and redis.call('EXISTS', line) == 1 then settle() end
redis.call('HSET', door, 'checked', digits(now))

local reserved = {}
local function reserve(one)
  local who = string.match(one, '^[^\n]*')
  reserved[who] = (reserved[who] or 0) + redis.call('ZADD', admitted, digits(now + 15000), one)
end
for _, one in ipairs(redis.call('ZRANGEBYSCORE', admitted, '(' .. digits(now + 35000), '+inf')) do reserve(one) end
local inside, count = {}, 0
local rows = redis.call('HGETALL', roster)
for i = 1, #rows, 2 do
  if string.sub(rows[i], 1, 1) ~= '@' then
    local who = string.match(rows[i + 1], '^[^\n]*')
    if who ~= '' and not inside[who] then inside[who], count = 'roster', count + 1 end
  end
end
if vacant or not pinText then redis.call('ZREMRANGEBYSCORE', admitted, '-inf', digits(now)) end
local owing = ''
if pinText and (writer ~= pinText or redis.call('ZCOUNT', admitted, '-inf', digits(now)) > 0) then owing = pinText end
for _, one in ipairs(redis.call('ZRANGE', admitted, 0, -1)) do
  local who = string.match(one, '^[^\n]*')
  reserved[who] = (reserved[who] or 0) + 1
  if not inside[who] then inside[who], count = 'admitted', count + 1 end
end

local own, usual = string.match(ARGV[1], '^(-?%d+) (%d+)$')
local said = number(state[2])
if said and count == 0 and redis.call('EXISTS', line) == 0 then
  said = nil
  redis.call('HDEL', door, 'said')
end
if number(own) >= 0 and number(own) < (said or math.huge) then
  said = number(own)
  redis.call('HSET', door, 'said', own)
end
if usual ~= '0' and usual ~= state[10] then redis.call('HSET', door, 'usual', usual) else usual = state[10] end
local cap = number(state[1]) or said or number(usual) or -1

local function unlist(who)
  redis.call('ZREM', line, who)
  redis.call('ZREM', waiting, who)
  redis.call('HDEL', names, who)
end
local function release(one)
  local who = string.match(one, '^[^\n]*')
  reserved[who] = (reserved[who] or 0) - redis.call('ZREM', admitted, one)
  if inside[who] == 'admitted' and reserved[who] <= 0 then inside[who], count = nil, count - 1 end
end
local function admit(who, one)
  unlist(who)
  if inside[who] then return end
  reserve(one or who)
  inside[who], count = 'admitted', count + 1
end
local function free() return now >= from and hold <= now and (cap < 0 or count < cap) end
-- recall has check-ins (sign 1) or turnings away (-1) that are ahead of the clock count from now on.
local function recall(sign)
  local first, last = '(' .. digits(now), '+inf'
  if sign < 0 then first, last = '-inf', '(' .. digits(-now) end
  for _, who in ipairs(redis.call('ZRANGEBYSCORE', waiting, first, last, 'LIMIT', 0, 1000)) do
    redis.call('ZADD', waiting, digits(sign * now), who)
  end
end
local function clean()
  recall(1)
  recall(-1)
  redis.call('ZREMRANGEBYSCORE', waiting, '(' .. digits(10000 - now), '(0')
  if now < from then return end
  for _, who in ipairs(redis.call('ZRANGEBYSCORE', waiting, '0', '(' .. digits(now - 10000), 'LIMIT', 0, 1000)) do unlist(who) end
end
local function advance()
  if not writer and now - born < 10000 then return end
  for n = 1, 200 do
    if not free() then break end
    local head = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')
    if #head == 0 or closed and tonumber(head[2]) >= 0 then break end
    admit(head[1])
    if count == cap then
      left = string.sub(left .. ' ' .. digits(now), -224)
      redis.call('HSET', door, 'left', left)
    end
  end
end
-- pace says how often a person from the line took the last place within the last hour, and how many milliseconds ago that
-- was for the first time.
local function pace()
  local n, first = 0, now
  for at in string.gmatch(left, '%d+') do
    local age = now - at
    if age >= 0 and age < 3600000 then
      n = n + 1
      first = math.min(first, at)
    end
  end
  return n, now - first
end
local function reason()
  if closed then return 'closed' end
  if hold > now then return 'no_capacity' end
  if now < from and (cap < 0 or count < cap) then return 'settling' end
  return 'full'
end
-- A described room with nobody in it is forgotten in its own time. What a description says of it are two numbers of seconds.
local function keep()
  local empty, departed = string.match(described or '', '^(%d+) (%d+) ')
  if empty and count == 0 and redis.call('EXISTS', line) == 0 then
    local most, left = math.max(empty, departed), redis.call('TTL', door)
    if left < 0 or left > most then redis.call('EXPIRE', door, most) end
  else
    redis.call('EXPIRE', door, 86400)
  end
  redis.call('EXPIRE', admitted, 3600)
  redis.call('EXPIRE', line, 3600)
  redis.call('EXPIRE', waiting, 3600)
  redis.call('EXPIRE', names, 3600)
end
