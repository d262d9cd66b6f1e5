-- Takes out leases that lapsed. Returns how many lapsed or were ahead of the clock, up to 200 each.
local leastPause, longestGap = tonumber(ARGV[2]), tonumber(ARGV[3])

-- After a gap without sweeps the store was silent, so that heartbeats are missing: nobody is evicted for a TTL.
local swept = tonumber(redis.call('HGET', head, 'swept'))
if now < swept or now - swept > longestGap then
  redis.call('HSET', head, 'swept', now, 'from', now + ttl)
  return 0
end
-- Another node swept this shard in this interval.
if now - swept < leastPause then return 0 end
local due, ahead = {}, math.max(recall(seen), recall(gone))
if now >= from then
  ahead = math.max(ahead, recall(leases))
  due = redis.call('ZRANGEBYSCORE', leases, '-inf', now - ttl, 'WITHSCORES', 'LIMIT', 0, 200)
end
for i = 1, #due, 2 do drop(due[i], tonumber(due[i + 1])) end
if #due > 0 then trim() end
-- While more is due, the next call may go on at once.
local most = math.max(#due / 2, ahead)
if most < 200 then redis.call('HSET', head, 'swept', now) end
return most
