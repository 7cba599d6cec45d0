"""The Lua scripts that run inside Redis. Each script is one atomic step.

Redis does not roll back. A script therefore reads first, which fails if a key has another type, and writes
only after that.

Positions. The position of an entry is its index in the list plus an offset. The field `recollect:positions`
contains the offsets as `index:offset` pairs: the offset applies from that index on. Appending does not change
them. Removing entries from the end raises the offset of entries that are appended later, so no position is
used twice. A new session starts with the time in microseconds, so no position is reused after clearing.
Removing an entry from the middle raises the offset of the entries after it.

Revisions. Changing entries in place does not change positions. `recollect:revision` gets a new value each
time.
"""

import hashlib
from dataclasses import dataclass, field

CHUNK = 500
"""How many entries are joined into one reply. Parsing replies is the largest cost of a client."""


@dataclass(frozen=True)
class Script:
    """A script, and the digest by which Redis finds it after its first run."""

    source: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha1(self.source.encode()).hexdigest())


_POSITIONS = """
local function parse_positions(text)
  local steps = {}
  for index, offset in string.gmatch(text or '', '(%d+):(%d+)') do
    steps[#steps + 1] = {tonumber(index), tonumber(offset)}
  end
  if #steps == 0 or steps[1][1] > 0 then table.insert(steps, 1, {0, 1}) end
  return steps
end
"""

# Cutting does not change the next position. The text is parsed from the end, where most cuts are: a history
# from which many entries were removed has many pairs.
_CUT = """
local function cut_positions(text, old_length, new_length)
  local kept, offset = #text, nil
  while kept > 0 do
    local ending = string.sub(text, math.max(1, kept - 63), kept)
    local index, found = string.match(',' .. ending, '^.*,(%d+):(%d+)$')
    if not index then break end
    if not offset and tonumber(index) <= old_length then offset = tonumber(found) end
    if tonumber(index) < new_length then break end
    kept = (offset and new_length == 0) and 0 or math.max(0, kept - #index - #found - 2)
  end
  local last = string.format('%.0f:%.0f', new_length, (offset or 1) + old_length - new_length)
  return kept > 0 and string.sub(text, 1, kept) .. ',' .. last or last
end
"""

# Creates the session if it does not exist, and lets all of its keys expire at the same time.
_TOUCH = """
local function touch(session_id, ttl)
  local seconds, micros = unpack(redis.call('TIME'))
  if redis.call('HSETNX', KEYS[1], 'created_at', seconds) == 1 then
    local start = string.format('0:%.0f', seconds * 1e6 + micros)
    redis.call('HSET', KEYS[1], 'session_id', session_id, 'recollect:positions', start)
  end
  redis.call('HSET', KEYS[1], 'updated_at', seconds)
  if ttl ~= '' then
    local ends = string.format('%.0f', seconds * 1000 + math.floor(micros / 1000) + ttl * 1000)
    redis.call('PEXPIREAT', KEYS[1], ends)
    redis.call('PEXPIREAT', KEYS[2], ends)
  else
    -- Without a ttl, the session keeps its remaining time: items must not outlive their session.
    local left = redis.call('PTTL', KEYS[1])
    if left > 0 then redis.call('PEXPIRE', KEYS[2], left) end
  end
end
"""

_PUSH = """
local function push(first)
  for start = first, #ARGV, 1000 do  -- the Lua stack is limited to some thousand values
    redis.call('RPUSH', KEYS[2], unpack(ARGV, start, math.min(start + 999, #ARGV)))
  end
end
"""

# Every change to a session changes one of these values. Only a cleared session equals one that never existed.
_STATE = """
local function state()
  local fields = redis.call(
    'HMGET', KEYS[1], 'created_at', 'updated_at', 'recollect:positions', 'recollect:revision'
  )
  local last = redis.call('LINDEX', KEYS[2], -1)
  local parts = {redis.call('LLEN', KEYS[2]), last and redis.sha1hex(last) or ''}
  for number = 1, 4 do parts[#parts + 1] = fields[number] or '' end
  return table.concat(parts, ' ')
end
"""

ADD = Script(f"""{_TOUCH}{_PUSH}
-- KEYS session, messages, batches; ARGV session_id, ttl, metadata of a new session, batch_id, items…
local batch_id = ARGV[4]
redis.call('HEXISTS', KEYS[1], 'created_at')
if batch_id ~= '' and redis.call('ZSCORE', KEYS[3], batch_id) then return 0 end
push(5)
touch(ARGV[1], ARGV[2])
if ARGV[3] ~= '' then redis.call('HSETNX', KEYS[1], 'recollect:metadata', ARGV[3]) end
if batch_id ~= '' then
  local now, day = redis.call('TIME')[1], 86400
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - day)
  redis.call('ZADD', KEYS[3], now, batch_id)
  redis.call('EXPIRE', KEYS[3], day)
end
return 1
""")

POP = Script(f"""{_TOUCH}{_CUT}
-- KEYS session, messages; ARGV session_id, ttl
local fields = redis.call('HMGET', KEYS[1], 'created_at', 'recollect:positions')
local entry = redis.call('RPOP', KEYS[2])
if not entry then return false end
local length = redis.call('LLEN', KEYS[2])
touch(ARGV[1], ARGV[2])
if fields[1] then
  redis.call('HSET', KEYS[1], 'recollect:positions', cut_positions(fields[2] or '', length + 1, length))
end
return {{entry, length}}
""")

# Returns at most `most` entries of a window: joined in chunks with a separator number, or each on its own.
READ = Script(f"""{_POSITIONS}
-- KEYS session, messages; ARGV window, argument, limit, most, separator
local fields = redis.call('HMGET', KEYS[1], 'created_at', 'recollect:positions', 'recollect:revision')
local length = redis.call('LLEN', KEYS[2])
local window, argument, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local function first_after(position)
  local steps = parse_positions(fields[2])
  for number, step in ipairs(steps) do
    local following = steps[number + 1]
    local index = math.max(step[1], position - step[2] + 1)
    if index < math.min(following and following[1] or length, length) then return index end
  end
  return length
end

local first, stop = 0, length
if window == 'newest' then first = math.max(0, length - limit)
elseif window == 'after' then first = first_after(argument); stop = math.min(length, first + limit)
elseif window == 'before' then stop = first_after(argument - 1); first = math.max(0, stop - limit)
elseif window == 'from' then first = argument; stop = math.min(length, first + limit)
end

local version = (fields[1] or '') .. ' ' .. (fields[3] or '')
local reply = {{version, fields[2] or '', string.format('%.0f', first), string.format('%.0f', stop)}}
for start = first, math.min(stop, first + tonumber(ARGV[4])) - 1, {CHUNK} do
  local entries = redis.call('LRANGE', KEYS[2], start, math.min(start + {CHUNK}, stop) - 1)
  reply[#reply + 1] = ARGV[5] == '' and entries or table.concat(entries, ',' .. ARGV[5] .. ',')
end
return reply
""")

STATE = Script(f"""{_STATE}
-- KEYS session, messages
return state()
""")

REWRITE = Script(f"""{_TOUCH}{_PUSH}{_CUT}{_STATE}
-- KEYS session, messages; ARGV session_id, ttl, state, kept, items…
if state() ~= ARGV[3] then return 0 end
local kept, length = tonumber(ARGV[4]), redis.call('LLEN', KEYS[2])
if kept < length then
  local positions = redis.call('HGET', KEYS[1], 'recollect:positions')
  redis.call('LTRIM', KEYS[2], -length, kept - length - 1)
  redis.call('HSET', KEYS[1], 'recollect:positions', cut_positions(positions or '', length, kept))
end
push(5)
touch(ARGV[1], ARGV[2])
return 1
""")

# Redis cannot remove list entries by index: they are replaced by a mark, and then removed by that value.
REVISE = Script(f"""{_TOUCH}{_STATE}
-- KEYS session, messages; ARGV session_id, ttl, state, mark, positions, indexes to remove, indexes to change,
-- texts…
if state() ~= ARGV[3] then return 0 end
local mark, number = ARGV[4], 7
for index in string.gmatch(ARGV[7], '%d+') do
  number = number + 1
  redis.call('LSET', KEYS[2], index, ARGV[number])
end
for index in string.gmatch(ARGV[6], '%d+') do redis.call('LSET', KEYS[2], index, mark) end
if ARGV[6] ~= '' then redis.call('LREM', KEYS[2], 0, mark) end
touch(ARGV[1], ARGV[2])
redis.call('HSET', KEYS[1], 'recollect:positions', ARGV[5], 'recollect:revision', mark)
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 15) == 'recollect:note:' then
    local version = string.match(redis.call('HGET', KEYS[1], field), '^(%d+) ') or '0'
    redis.call('HSET', KEYS[1], field, string.format('%d', version + 1) .. ' {{}}')
  end
end
return 1
""")

DESCRIBE = Script(f"""{_TOUCH}
-- KEYS session, messages; ARGV session_id, ttl, metadata
touch(ARGV[1], ARGV[2])
redis.call('HSET', KEYS[1], 'recollect:metadata', ARGV[3])
return 1
""")

SET_NOTE = Script(f"""{_TOUCH}
-- KEYS session, messages; ARGV session_id, ttl, field, current version, new version, data
local stored = redis.call('HGET', KEYS[1], ARGV[3])
local version = stored and string.match(stored, '^(%d+) ') or '0'
if version ~= ARGV[4] then return 0 end
touch(ARGV[1], ARGV[2])
redis.call('HSET', KEYS[1], ARGV[3], ARGV[5] .. ' ' .. ARGV[6])
return 1
""")

_REMOVE = """
local function remove()
  for number, kind in ipairs({'hash', 'list', 'string', 'zset'}) do
    local found = redis.call('TYPE', KEYS[number]).ok
    if found ~= 'none' and found ~= kind then
      return redis.error_reply('WRONGTYPE a key of the session holds another kind of value')
    end
  end
  return redis.call('UNLINK', unpack(KEYS))
end
"""

CLEAR = Script(f"""{_REMOVE}
-- KEYS session, messages, counter, batches
return remove()
""")

CLEAR_IDLE = Script(f"""{_REMOVE}
-- KEYS session, messages, counter, batches; ARGV seconds
local updated = tonumber(redis.call('HGET', KEYS[1], 'updated_at'))
if not updated or redis.call('TIME')[1] - updated <= tonumber(ARGV[1]) then return 0 end
return remove()
""")

TAKE_LEASE = Script("""
-- KEYS lease; ARGV owner, milliseconds
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""")

DROP_LEASE = Script("""
-- KEYS lease; ARGV owner
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
""")

INFO = Script("""
-- KEYS session, messages
local fields = redis.call('HMGET', KEYS[1], 'session_id', 'created_at', 'updated_at', 'recollect:metadata')
for number = 1, 4 do fields[number] = fields[number] or '' end
local length = redis.pcall('LLEN', KEYS[2])
fields[5] = type(length) == 'number' and length or 0
return fields
""")
