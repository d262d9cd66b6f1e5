-- Renews the leases in ARGV: their heartbeat. Returns the places in ARGV of those that are missing.
local leases = KEYS[1]
local t = redis.call('TIME')
local now = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
local all, missing = {}, {}
for i, lease in ipairs(ARGV) do
  all[2 * i - 1] = now
  all[2 * i] = lease
end
-- If all scores changed, all leases exist: the usual case, in one command.
if redis.call('ZADD', leases, 'XX', 'CH', unpack(all)) == #ARGV then return missing end
local scores = redis.call('ZMSCORE', leases, unpack(ARGV))
for i = 1, #ARGV do
  if not scores[i] then missing[#missing + 1] = i end
end
return missing
