-- Writes a change of a room's roster for the room's owner. Returns the roster.Outcome (1 written, 2 the whole roster is
-- needed, 3 fenced) and the current settings of the door, "<version> <cap> <closed> <description>".
local pin, roster, left, admitted, door = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, rosterSeconds, settings = ARGV[1], ARGV[4], ARGV[5]
-- after is the change before this one; 0 is the whole roster, -1 the whole of a settled one.
local seq, after = tonumber(ARGV[2]), tonumber(ARGV[3])
local whole, settled = after <= 0, after < 0
-- Four arguments for each peer that is put, from firstPut to lastPut, and then four for each that has left.
local firstPut = 7
local lastPut = firstPut - 1 + 4 * tonumber(ARGV[6])

-- Whether the change may be written.
if redis.pcall('GET', pin) ~= owner then return {3, ''} end
local head = redis.pcall('HMGET', roster, '@pin', '@seq', '@began')
if head.err then redis.call('DEL', roster) end
local written = head[1] == owner and tonumber(head[2]) or 0
-- A server that thaws executes requests that were repeated meanwhile.
if written >= seq then return {1, settings} end
if not whole and written ~= after then return {2, ''} end
if type(redis.pcall('ZCARD', left)) == 'table' then redis.call('DEL', left) end

-- Reservations of the waiting list. They lapse here and not by the clock alone, because their people may be on their way.
-- A new owner's first write gives lapsed ones 35 s more.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local reserved = redis.call('EXISTS', admitted) == 1
if reserved and head[1] ~= owner then
  for _, who in ipairs(redis.call('ZRANGEBYSCORE', admitted, '-inf', now)) do redis.call('ZADD', admitted, now + 35000, who) end
elseif reserved then
  redis.call('ZREMRANGEBYSCORE', admitted, '-inf', now)
end

-- leave notes a person who left. Hidden people, whose identity follows a line feed, leave unnoticed.
local function leave(who, name, at)
  if string.sub(who, 1, 1) ~= '\n' then redis.call('ZADD', left, 'GT', at, who .. name) end
end

-- A new owner's whole roster keeps the last owner's other people until they are put or the roster is settled. A field
-- @wait:<id> marks each of them.
local before = {}
local moved = head[1] and head[1] ~= owner
local function awaited(id) return not settled and (moved or before['@wait:' .. id]) end
if whole then
  local all = redis.call('HGETALL', roster)
  for i = 1, #all, 2 do before[all[i]] = all[i + 1] end
  redis.call('DEL', roster)
end

-- The peers that are put. Someone who is known keeps the earlier time of joining. A reservation ends with the peer's row.
for i = firstPut, lastPut, 4 do
  local id, who, name, since = ARGV[i], ARGV[i + 1], ARGV[i + 2], now - ARGV[i + 3]
  local was = before[id] or not whole and redis.call('HGET', roster, id)
  was = was and tonumber(string.match(was, '^\n?[^\n]*\n(%d+)'))
  if was and was < since then since = was end
  redis.call('HSET', roster, id, who .. string.format('%.0f', since) .. ' ' .. name)
  redis.call('HDEL', roster, '@wait:' .. id)
  redis.call('ZREM', left, who .. name)
  if reserved then redis.pcall('ZREM', admitted, string.sub(who, 1, -2), who .. id) end
  before[id] = nil
end

-- The peers that have left. The reservation of one that never had a row ends, too.
for i = lastPut + 1, #ARGV, 4 do
  redis.call('HDEL', roster, ARGV[i], '@wait:' .. ARGV[i])
  if reserved then redis.pcall('ZREM', admitted, ARGV[i + 1] .. ARGV[i]) end
  leave(ARGV[i + 1], ARGV[i + 2], now - ARGV[i + 3])
  before[ARGV[i]] = nil
end

-- Whoever was in the old whole roster and is not in the new one.
for id, was in pairs(before) do
  local who, name = string.match(was, '^([^\n]+\n)%d+ (.*)$')
  if string.sub(id, 1, 1) ~= '@' then
    if awaited(id) then
      redis.call('HSET', roster, id, was, '@wait:' .. id, 1)
    elseif who then
      leave(who, name, now)
    end
  end
end

-- A leave is never ahead of the clock, which may have been set back. An hour and 50 people are kept.
for _, who in ipairs(redis.call('ZRANGEBYSCORE', left, '(' .. now, '+inf')) do redis.call('ZADD', left, now, who) end
redis.call('ZREMRANGEBYSCORE', left, '-inf', now - 3600000)
redis.call('ZREMRANGEBYRANK', left, 0, -51)
redis.call('EXPIRE', left, 3600)

redis.call('HSET', roster, '@pin', owner, '@seq', ARGV[2])
local began = head[3] or not head[1] and string.format('%.0f', now)
if began then redis.call('HSET', roster, '@began', began) end
redis.call('EXPIRE', roster, rosterSeconds)

-- Reservations that were made while the store had forgotten the roster did not count the people who are in it now. Where
-- both together exceed the cap, these reservations end. In a room that has just been opened they never do, because the
-- script that reserves counts the reservations of others.
local function endUncounted(cap)
  if head[1] or not reserved or not cap or cap < 0 then return end
  local inside, count, others = {}, 0, {}
  for _, row in ipairs(redis.call('HVALS', roster)) do
    local who = string.match(row, '^([^\n]+)\n')
    if who and not inside[who] then inside[who], count = true, count + 1 end
  end
  for _, one in ipairs(redis.call('ZRANGE', admitted, 0, -1)) do
    local who = string.match(one, '^[^\n]*')
    if inside[who] == nil then inside[who], count = false, count + 1 end
    if not inside[who] then others[#others + 1] = one end
  end
  if count <= cap then return end
  for _, one in ipairs(others) do redis.call('ZREM', admitted, one) end
end

-- The later version of the door's settings wins, so that a store that forgot them gets them back from the owner.
local stands = redis.pcall('HMGET', door, 'set', 'cap', 'closed', 'born', 'said', 'usual', 'room')
if stands.err then return {1, ''} end
local set = stands[1] and stands[1] .. ' ' .. (stands[2] or '') .. ' ' .. (stands[3] or '') .. (stands[7] and ' ' .. stands[7] or '') or ''
local version, cap, closed, described = string.match(settings, '^(%d+) (%-?%d*) (%d?) ?(.*)$')
local later = version and tonumber(version) > (tonumber(stands[1] or '') or 0)
endUncounted(tonumber(later and cap or '') or tonumber(stands[2] or stands[5] or stands[6] or ''))
-- A described room lives as long as somebody is in it, and then as long as it says.
local function keep(text)
  local departed = string.match(text or '', '^%d+ (%d+) ')
  if not departed then return end
  for _, id in ipairs(redis.call('HKEYS', roster)) do
    if string.sub(id, 1, 1) ~= '@' then
      redis.call('EXPIRE', door, 86400)
      return
    end
  end
  redis.call('EXPIRE', door, departed)
end
if not later then
  keep(stands[7])
  return {1, set}
end
redis.call('HSET', door, 'set', version)
if cap ~= '' then redis.call('HSET', door, 'cap', cap) end
if closed ~= '' then redis.call('HSET', door, 'closed', closed) end
if described ~= '' then redis.call('HSET', door, 'room', described) end
-- A door that is made here lets nobody in for 3 s.
if not stands[4] then redis.call('HSET', door, 'born', string.format('%.0f', now), 'from', string.format('%.0f', now + 3000)) end
redis.call('EXPIRE', door, 86400)
keep(described)
return {1, settings}
