-- Tells that identities still wait at a node, from ARGV[4] on. It renews no reservation, because the node may be wrong.
-- Returns {reason, pace (two numbers), the roster's writer, the owing pin}, then a place for each identity: its position in
-- line, 0 not in line, -1 inside, -2 turned away.
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
return answer
