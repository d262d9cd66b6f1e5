package redisstore

// See people/waitlist/DESIGN.md. Each script is for one room: KEYS = pin, roster, door, admitted, line, waiting, names. Times
// are milliseconds of the store's clock, tickets microseconds.

// waitingPrelude begins them. ARGV[1] is the token's cap (-1: none) and the server's (0: none). ARGV[2] is a pin under
// which nobody is in the room, or empty. ARGV[3] is 1 if nobody of an earlier owner can come, 2 if also its node is dead.
//
// A pin is owing until its media node writes (rosterScript) or has nobody; until then the last roster and lapsed
// reservations count. A young or unchecked memory lets nobody in or out before `from`: people come back with tickets.
// A roster that began in this memory 3 s ago shows that a missing door never was.
// Checks that are always late put it off every other time, so that a slow node's line moves.
//
// A time further ahead than a script ever sets one was written before the clock was set back. It is replaced by what this
// clock would have written, or one wrong clock would shut the room until the right one comes to that time.
const waitingPrelude = `
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
local state = redis.call('HMGET', door, 'cap', 'said', 'closed', 'newest', 'born', 'from', 'hold', 'left', 'checked', 'usual', 'set')
local closed, newest = state[3] == '1', number(state[4]) or 0
local born, from, hold = number(state[5]), number(state[6]) or 0, number(state[7]) or 0
local left, checked = state[8] or '', number(state[9])
local fresh = not born
if fresh then
  born = now
  redis.call('HSET', door, 'born', digits(now))
end
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
local function keep()
  redis.call('EXPIRE', door, 86400)
  redis.call('EXPIRE', admitted, 3600)
  redis.call('EXPIRE', line, 3600)
  redis.call('EXPIRE', waiting, 3600)
  redis.call('EXPIRE', names, 3600)
end
`

// enterScript is admission, and claim for who is let in: ARGV[4...] = identity, Ticket, Wait, Hold, new pin, its seconds
// to live, text for a key of another type, Host, name, peer. A reservation is of the identity and the peer; of the identity
// alone where the line let it in or a place is kept, until one of its peers enters. Without a roster a reservation is Admitted, not Inside: the caller
// asks for proof that nobody was forgotten.
const enterScript = waitingPrelude + `
local who, ticket, forMs = ARGV[4], number(ARGV[5]), number(ARGV[7])
local mine = ARGV[13] ~= '' and who .. '\n' .. ARGV[13] or who
if forMs > 0 then
  hold = now + forMs
  redis.call('HSET', door, 'hold', digits(hold))
  release(mine)
  release(who)
end
if from == 0 and ticket > 0 and now - born < 10000 then
  settle()
elseif from == 0 and fresh and count > 0 and (number(began) or now) + 3000 > now then
  settle(math.min(number(began) or now, now) + 3000)
end
clean()
advance()
local outcome, position = 0, 0
if inside[who] then
  outcome = inside[who] == 'admitted' and not writer and 2 or 3
  unlist(who)
  if inside[who] == 'admitted' or pinText and writer ~= pinText then
    reserve(mine)
    if mine ~= who then release(who) end
  end
elseif free() and (closed and ARGV[11] == '1' or not closed and redis.call('EXISTS', line) == 0) then
  outcome = 2
  admit(who, mine)
elseif ARGV[6] == '1' then
  outcome = 1
  local has = redis.call('ZSCORE', line, who)
  if has then
    ticket = tonumber(has)
  else
    if ticket <= 0 then ticket = math.max(newest + 1, micros) end
    redis.call('ZADD', line, digits(ticket), who)
    redis.call('HSET', door, 'newest', digits(math.max(newest, ticket)))
  end
  redis.call('ZADD', waiting, digits(now), who)
  if ARGV[12] ~= '' then redis.call('HSET', names, who, ARGV[12]) end
  position = redis.call('ZRANK', line, who) + 1
end
keep()
if type(stands) == 'table' then
  if string.sub(stands.err, 1, 9) ~= 'WRONGTYPE' then return stands end
  stands = ARGV[10]
end
local won = 0
if not stands and outcome >= 2 and ARGV[8] ~= '' then
  redis.call('SET', pinned, ARGV[8], 'EX', ARGV[9])
  won = 1
end
local n, since = pace()
return {outcome, position, reason(), n, since, digits(ticket), writer or '', owing, won, stands}`

// checkInScript: ARGV[4...] = identities that wait at a node. It renews no reservation: the node may be wrong.
const checkInScript = waitingPrelude + `
local there = {}
for i, at in ipairs(redis.call('ZMSCORE', waiting, unpack(ARGV, 4))) do
  if at and tonumber(at) >= 0 then
    there[#there + 1] = digits(now)
    there[#there + 1] = ARGV[i + 3]
  end
end
if #there > 0 then redis.call('ZADD', waiting, unpack(there)) end
clean()
advance()
keep()
local n, since = pace()
local answer = {reason(), n, since, writer or '', owing}
for i = 4, #ARGV do
  local who, place = ARGV[i], 0
  if inside[who] then
    place = -1
    unlist(who)
  else
    local rank = redis.call('ZRANK', line, who)
    if rank then
      place = rank + 1
    else
      local turned = redis.call('ZSCORE', waiting, who)
      if turned and tonumber(turned) < 0 then place = -2 end
    end
  end
  answer[#answer + 1] = place
end
return answer`

// doorScript: ARGV[4...] = deed, identity, cap and closed (empty: as before), how many to list, peer (of a release). A moderator's admission
// is a ticket below zero. Settings have a version, for rosterScript.
const doorScript = waitingPrelude + `
local deed, who, done = ARGV[4], ARGV[5], 0
if deed == 'admit' and redis.call('ZSCORE', line, who) then
  done = 1
  redis.call('ZADD', line, digits(-1000000000000000 + redis.call('HINCRBY', door, 'chosen', 1)), who)
elseif deed == 'turn' and redis.call('ZSCORE', line, who) then
  done = 1
  unlist(who)
  redis.call('ZADD', waiting, digits(-now), who)
elseif deed == 'quit' then
  unlist(who)
elseif deed == 'release' then
  release(ARGV[9] ~= '' and who .. '\n' .. ARGV[9] or who)
elseif deed == 'keep' and inside[who] then
  done = 1
  redis.call('ZADD', admitted, digits(now + 10000), who)
elseif deed == 'open' then
  hold = 0
  redis.call('HDEL', door, 'hold')
end
if ARGV[6] ~= '' then
  cap = number(ARGV[6])
  redis.call('HSET', door, 'cap', ARGV[6])
end
if ARGV[7] ~= '' then
  closed = ARGV[7] == '1'
  redis.call('HSET', door, 'closed', ARGV[7])
end
if ARGV[6] ~= '' or ARGV[7] ~= '' then redis.call('HSET', door, 'set', digits(math.max((number(state[11]) or 0) + 1, micros))) end
clean()
advance()
keep()
if fresh and deed == 'look' then redis.call('DEL', door) end
local n, since = pace()
local answer = {done, cap, closed and 1 or 0, count, redis.call('ZCARD', line), n, since, pinText or ''}
local shown = redis.call('ZRANGE', line, 0, ARGV[8] - 1, 'WITHSCORES')
for i = 1, #shown, 2 do
  answer[#answer + 1] = shown[i]
  answer[#answer + 1] = shown[i + 1]
  answer[#answer + 1] = redis.call('HGET', names, shown[i]) or ''
end
return answer`
