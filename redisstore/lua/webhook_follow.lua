-- Compares the roster of a room with what receivers of webhooks were told of it, and queues each difference as a fact. It
-- may run at any time and be repeated. Returns how many facts are new, the sid of the room, and 1 if the room is over and
-- nothing of it waits to be sent.
local pin, roster, told, queue, history = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
-- owner is the pin of the media node that writes, or empty if a sender asks, who knows nothing of tracks.
local owner, whole, sid = ARGV[1], ARGV[2] == '1', ARGV[3]
local most, keepSeconds, closed, lastPut = ARGV[4], ARGV[5], ARGV[6] == '1', 7 + 2 * tonumber(ARGV[7])
-- Microphones and cameras stay published while they are muted.
local screens = {SCREEN_SHARE = true, SCREEN_SHARE_AUDIO = true}

local stands = redis.pcall('GET', pin)
if type(stands) == 'table' then stands = false end
local head = redis.pcall('HMGET', roster, '@pin', '@began')
if head.err or owner ~= '' and (stands ~= owner or head[1] ~= owner) then return {0, '', 0} end

local known = redis.pcall('HMGET', told, '@sid', '@pin', '@seq', '@gone', '@began', '@people')
local queued = redis.pcall('XLEN', queue)
if known.err or type(queued) == 'table' then
  redis.call('DEL', told, queue)
  known, queued = {}, 0
end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local seq, people, began, added = tonumber(known[3] or now), tonumber(known[6] or 0), known[5], 0

local function tell(kind, ...)
  seq, added = seq + 1, added + 1
  redis.call('XADD', queue, 'MAXLEN', most, string.format('%.0f', seq) .. '-0', 'kind', kind, 'at', string.format('%.0f', now),
    'sid', sid, 'began', began, 'people', people, ...)
end

-- row is a peer's row in the roster. One of a hidden peer begins with a line feed.
local function count(row, by)
  if string.sub(row, 1, 1) ~= '\n' then people = people + by end
end

local function join(id, row)
  local was = redis.call('HGET', told, '=' .. id)
  if was ~= row then redis.call('HSET', told, '=' .. id, row) end
  if was then return end
  count(row, 1)
  tell('participant_joined', 'peer', id, 'row', row)
end

-- tracks returns a peer's published tracks, each {source, number}, and the highest number that a track of the peer had.
local function tracks(id)
  local text, found = redis.call('HGET', told, '+' .. id) or '0', {}
  for source, n in string.gmatch(text, '([%u_]+):(%d+)') do found[#found + 1] = {source, n} end
  return found, tonumber(string.match(text, '^%d+'))
end

local function leave(id, row)
  for _, track in ipairs(tracks(id)) do
    tell('track_unpublished', 'peer', id, 'row', row, 'source', track[1], 'number', track[2])
  end
  count(row, -1)
  tell('participant_left', 'peer', id, 'row', row)
  redis.call('HDEL', told, '=' .. id, '+' .. id)
end

-- publish compares the sources that a peer shows now with its published tracks.
local function publish(id, row, sources)
  local before, highest = tracks(id)
  local shown, on, after = {}, {}, {}
  for source in string.gmatch(sources, '[%u_]+') do shown[source] = true end
  for _, track in ipairs(before) do
    if shown[track[1]] or not screens[track[1]] then
      on[track[1]] = true
      after[#after + 1] = track[1] .. ':' .. track[2]
    else
      tell('track_unpublished', 'peer', id, 'row', row, 'source', track[1], 'number', track[2])
    end
  end
  for source in string.gmatch(sources, '[%u_]+') do
    if not on[source] then
      highest = highest + 1
      after[#after + 1] = source .. ':' .. highest
      tell('track_published', 'peer', id, 'row', row, 'source', source, 'number', highest)
    end
  end
  redis.call('HSET', told, '+' .. id, highest .. ' ' .. table.concat(after, ' '))
end

local function save()
  redis.call('HSET', told, '@seq', string.format('%.0f', seq), '@people', people)
  redis.call('EXPIRE', told, keepSeconds)
  redis.call('EXPIRE', queue, keepSeconds)
end

-- The peers that were told of, each {id, row}.
local function present()
  local all, found = redis.call('HGETALL', told), {}
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 1) == '=' then found[#found + 1] = {string.sub(all[i], 2), all[i + 1]} end
  end
  table.sort(found, function(a, b) return a[1] < b[1] end)
  return found
end

-- finish ends the room for its receivers.
local function finish()
  for _, one in ipairs(present()) do leave(one[1], one[2]) end
  people = 0
  tell('room_finished')
  redis.call('HDEL', told, '@sid', '@pin', '@gone', '@began')
  save()
  return {added, '', 0}
end

-- Without a roster the room is over. If its pin stands, the owner may only be late in writing the roster again.
if not head[1] then
  if not known[1] then return {0, '', queued == 0 and 1 or 0} end
  sid = known[1]
  if stands and now - tonumber(known[4] or now) < 10000 then
    redis.call('HSETNX', told, '@gone', string.format('%.0f', now))
    return {0, sid, 0}
  end
  return finish()
end
if known[4] then redis.call('HDEL', told, '@gone') end

-- A room that was closed keeps its pin and an empty roster for a while.
local empty = true
for _, id in ipairs(redis.call('HKEYS', roster)) do empty = empty and string.sub(id, 1, 1) == '@' end
if not known[1] and empty and #ARGV == lastPut then return {0, '', queued == 0 and 1 or 0} end

if not known[1] then
  began, people = head[2] or string.format('%.0f', now), 0
  redis.call('HSET', told, '@sid', sid, '@began', began, '@pin', head[1])
  tell('room_started')
else
  sid = known[1]
  local function home(text) return string.match(text or '', '^%d+|(%d+)|%x+|([^|]*)|([^|]*)|') end
  local _, from, boot = home(known[2])
  local epoch, to, nextBoot = home(head[1])
  if epoch and (from ~= to or boot ~= nextBoot) then
    local why = ''
    for _, change in ipairs(redis.call('TYPE', history).ok == 'list' and redis.call('LRANGE', history, 0, -1) or {}) do
      local of, reason = string.match(change, '^%d+|(%d+)|[^|]*|[^|]*|(.*)$')
      if of == epoch then why = reason break end
    end
    tell('room_rehomed', 'from', from or '', 'to', to, 'epoch', epoch, 'cause', why)
  end
  if known[2] ~= head[1] then redis.call('HSET', told, '@pin', head[1]) end
end

if whole then
  local all, here, arrived = redis.call('HGETALL', roster), {}, {}
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 1) ~= '@' then
      here[all[i]] = true
      arrived[#arrived + 1] = {all[i], all[i + 1], tonumber(string.match(all[i + 1], '^\n?[^\n]*\n(%d+)') or 0)}
    end
  end
  for _, one in ipairs(present()) do
    if not here[one[1]] then leave(one[1], one[2]) end
  end
  table.sort(arrived, function(a, b) return a[3] < b[3] or a[3] == b[3] and a[1] < b[1] end)
  for _, one in ipairs(arrived) do join(one[1], one[2]) end
end

-- Two arguments for each peer that was put: its id and its sources, or "?" if they are not known yet.
for i = 8, lastPut, 2 do
  local id, sources = ARGV[i], ARGV[i + 1]
  local row = redis.call('HGET', roster, id)
  if row then
    join(id, row)
    if sources ~= '?' then publish(id, row, sources) end
  end
end

-- Two for each peer that has left: its id and what its row was or would have been, because it may have come and gone
-- between two writes.
for i = lastPut + 1, #ARGV, 2 do
  local id = ARGV[i]
  if redis.call('HEXISTS', roster, id) == 0 then
    join(id, redis.call('HGET', told, '=' .. id) or ARGV[i + 1])
    leave(id, redis.call('HGET', told, '=' .. id))
  end
end
if closed and empty then return finish() end
save()
return {added, sid, 0}
