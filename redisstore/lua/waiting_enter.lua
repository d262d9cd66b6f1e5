-- Admits an identity, puts it in line or refuses it, and claims the room's pin for one that is let in.
-- A reservation is of the identity and the peer. It is of the identity alone where the line let it in or where a place is
-- kept, until one of its peers enters. Without a roster a reservation counts as admitted, not as inside: the caller asks for
-- proof that nobody was forgotten.
-- Returns {outcome (0 refused, 1 in line, 2 admitted, 3 inside), position, reason, pace (two numbers), ticket, the roster's
-- writer, the owing pin, whether the pin was claimed, the door's settings as
-- write_roster.lua returns them, the pin from before}.
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
local set = state[11] and state[11] .. ' ' .. (state[1] or '') .. ' ' .. (state[3] or '') .. (described and ' ' .. described or '') or ''
return {outcome, position, reason(), n, since, digits(ticket), writer or '', owing, won, set, stands}
