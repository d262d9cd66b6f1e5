-- Appends facts to the cluster's events, each unless its marker says that it was reported before, and trims what is too
-- many or too old. Returns how many were new.
local most, age = ARGV[1], tonumber(ARGV[2])
local added = 0
for i = 2, #KEYS do
  if redis.call('SET', KEYS[i], '', 'NX', 'EX', ARGV[2 * i - 1]) then
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', most, '*', 'e', ARGV[2 * i])
    added = added + 1
  end
end
local now = redis.call('TIME')
redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%.0f', now[1] * 1000 - age))
return added
