-- SPDX-License-Identifier: MIT
-- All changes of the owner of a key. Redis runs one script at a time and to its end, so each act is atomic.
-- Keys of a queue named bookings:
--   bookings:data:KEY        the items that wait, the oldest first
--   bookings:processing:KEY  the item in progress, or in progress when its worker died
--   bookings:lock:KEY        until it expires, the key stays with its owner
--   bookings:fence           KEY -> the token of its owner: only this token may write; none without items
--   bookings:token           the last token given out
--   bookings:ledger          the acts in order of execution; bookings:counts has the number of each
-- A token belongs to a pending Bull job, with the job id bookings:KEY#TOKEN, or to a run.
-- Arguments: the queue, the prefix of its jobs in Bull, the lock's time in ms, the act, and the arguments of the act.
local name, jobs, time = ARGV[1], ARGV[2], tonumber(ARGV[3])
local call = redis.call
local fence = name .. ':fence'

local function of(key, what) return name .. ':' .. what .. ':' .. key end

local function write(row)
  local clock = call('TIME')
  row.at = clock[1] * 1000 + math.floor(clock[2] / 1000)
  call('RPUSH', name .. ':ledger', cjson.encode(row))
  call('HINCRBY', name .. ':counts', row.event, 1)
end

local function lock(key, token)
  call('SET', of(key, 'lock'), token, 'PX', time)
  return call('PEXPIRETIME', of(key, 'lock'))
end

-- Afterwards the earlier owner of the key can neither start nor end an item.
local function hand_over(key)
  local token = call('INCR', name .. ':token')
  call('HSET', fence, key, token)
  return token, lock(key, token)
end

local function has(key, token) return call('HGET', fence, key) == token end

local function release(key)
  call('DEL', of(key, 'lock'))
  call('HDEL', fence, key)
end

local act = {}

-- Returns the token of the Bull job to add, if there is none for this key.
function act.enqueue(key, item)
  local token, ends
  call('RPUSH', of(key, 'data'), item)
  if call('HEXISTS', fence, key) == 0 then token, ends = hand_over(key) end
  write({ event = 'enqueue', key = key, item = item, ends = ends })
  return token
end

-- A Bull job may be delivered twice. The run gets a new token, so a second or late delivery has an invalid one.
function act.start(key, token, pid)
  if not has(key, token) then return write({ event = 'unwanted', key = key, token = tonumber(token) }) end
  local item = call('LINDEX', of(key, 'processing'), 0)
    or call('LMOVE', of(key, 'data'), of(key, 'processing'), 'LEFT', 'RIGHT')
  if not item then return release(key) end
  local mine, ends = hand_over(key)
  write({ event = 'start', key = key, token = mine, item = item, pid = tonumber(pid), ends = ends })
  return { mine, item }
end

-- Renews an expired lock as well, as long as no other run has the key.
function act.renew(key, token)
  if not has(key, token) then return write({ event = 'refused', key = key, token = tonumber(token) }) end
  write({ event = 'renew', key = key, token = tonumber(token), ends = lock(key, token) })
  return 1
end

-- Returns the token of the next Bull job, if items wait.
function act.done(key, token)
  if not has(key, token) then return write({ event = 'refused', key = key, token = tonumber(token) }) end
  local item = call('LPOP', of(key, 'processing'))
  local next_token, ends
  if call('LLEN', of(key, 'data')) > 0 then next_token, ends = hand_over(key) else release(key) end
  write({ event = 'done', key = key, token = tonumber(token), item = item, ends = ends })
  return next_token
end

-- Revives keys whose lock has expired and whose token does not belong to a job that Bull still has: keys of a run that
-- fell silent, and of a job that was lost or never added. Bull delivers the jobs that it has, repeatedly if necessary.
function act.revive()
  local revived = {}
  local fences = call('HGETALL', fence)
  for i = 1, #fences, 2 do
    local key = fences[i]
    if call('EXISTS', of(key, 'lock'), jobs .. key .. '#' .. fences[i + 1]) == 0 then
      local token, ends = hand_over(key)
      write({ event = 'revive', key = key, token = token, ends = ends })
      table.insert(revived, { key, token })
    end
  end
  return revived
end

return act[ARGV[4]](unpack(ARGV, 5))
