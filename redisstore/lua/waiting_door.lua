-- Does a moderator's deed or a node's, changes the door's settings, and lists the line.
-- A moderator's admission is a ticket below zero. The settings have a version, which write_roster.lua compares.
-- Returns {done, cap, closed, people inside, people in line, pace (two numbers), pin, description}, then identity, ticket and name of
-- those that are listed.
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
if ARGV[10] ~= '' then
  described = ARGV[10]
  redis.call('HSET', door, 'room', described)
end
if deed == 'forget' then
  cap, closed, described = -1, false, false
  redis.call('HDEL', door, 'cap', 'closed', 'room', 'said', 'usual')
end
if ARGV[6] ~= '' or ARGV[7] ~= '' or ARGV[10] ~= '' or deed == 'forget' then
  redis.call('HSET', door, 'set', digits(math.max((number(state[11]) or 0) + 1, micros)))
end
clean()
advance()
keep()
if deed == 'make' and described and count == 0 then redis.call('EXPIRE', door, string.match(described, '^%d+')) end
if fresh and deed == 'look' then redis.call('DEL', door) end
local n, since = pace()
local answer = {done, cap, closed and 1 or 0, count, redis.call('ZCARD', line), n, since, pinText or '', described or ''}
local shown = redis.call('ZRANGE', line, 0, ARGV[8] - 1, 'WITHSCORES')
for i = 1, #shown, 2 do
  answer[#answer + 1] = shown[i]
  answer[#answer + 1] = shown[i + 1]
  answer[#answer + 1] = redis.call('HGET', names, shown[i]) or ''
end
return answer
