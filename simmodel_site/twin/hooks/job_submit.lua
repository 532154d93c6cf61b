-- Written by simmodel twin install-hooks.
-- Tells the twin's stream that jobs are submitted. Where a heartbeat is named below, it also gives batch jobs a begin
-- time while the twin is alive and decides on starts: Slurm starts such a job once that time has come, whatever dies.
-- In a file of your own that has these functions, call them in the same way.

local script = SCRIPT
local heartbeat = HEARTBEAT -- nil: nothing is held
local stale_after = STALE_AFTER -- seconds
local maximum_delay = MAXIMUM_DELAY -- seconds
local chosen = PARTITIONS -- nil: the jobs of all partitions
local release = RELEASE
local NICE_0 = 2147483648 -- Slurm's number for Nice=0

-- Returns "hold" or "look", what the twin wants while it is alive; "dead" if it stopped without a word; else "away".
local function twin()
  if heartbeat == nil then return "away" end
  local file = io.open(heartbeat, "r")
  if file == nil then return "away" end
  local at, word = (file:read("*l") or ""):match("^(%d+) %d+ (%a+)")
  file:close()
  if at == nil or math.abs(os.time() - tonumber(at)) > stale_after then return "dead" end
  return word
end

local function is_batch(job)
  return job.script ~= nil and job.script ~= ""
end

-- Whether nobody else has a say in the start of a job.
local function is_free(job)
  return (job.begin_time == nil or job.begin_time == 0) and job.priority ~= 0 and job.admin_comment == nil
end

-- Whether all partitions of a job are the twin's.
local function is_there(job, partitions)
  if chosen == nil then return true end
  if job.partition ~= nil then
    for name in job.partition:gmatch("[^,]+") do
      if not chosen[name] then return false end
    end
    return true
  end
  for name, partition in pairs(partitions) do
    if partition.flag_default == 1 then return chosen[name] == true end
  end
  return false
end

function slurm_job_submit(job, partitions, user)
  local state = twin()
  if state == "hold" and is_batch(job) and is_free(job) and is_there(job, partitions) then
    job.begin_time = os.time() + maximum_delay
    job.admin_comment = string.format("simmodel-held@%d", job.begin_time)
  elseif state == "dead" then
    os.execute(release .. " >/dev/null 2>&1 </dev/null &") -- nothing of the job is part of it
  end
  os.execute(script .. " >/dev/null 2>&1 </dev/null &")
  return slurm.SUCCESS
end

local wished = {} -- held jobs whose begin time was changed by others: Slurm does not tell it of a record

-- Whether a command of a twin still finds the job as the twin left it; nothing else can happen to the job meanwhile.
local function is_ours(job, record)
  local mark, said = record.admin_comment or "", job.admin_comment or ""
  local released = said:match("^simmodel%-released@(%d+)$")
  if released then
    return mark == "simmodel-held@" .. released and not (wished[record.job_id] or wished[record.array_job_id])
  end
  local moved = mark:match("^simmodel%-preferred@(%d+)$")
  if said:match("^simmodel%-preferred@%d+$") or (said == "" and moved and job.nice == NICE_0) then
    return (mark == "" or moved) and record.nice == NICE_0 - tonumber(moved or 0)
  end
  return nil -- somebody else's command
end

function slurm_job_modify(job, record, partitions, user)
  local ours = is_ours(job, record)
  if ours == false then return slurm.ERROR end
  if ours == nil and job.begin_time ~= 0 and (record.admin_comment or ""):match("^simmodel%-held@") then
    wished[record.job_id] = true
  end
  os.execute(script .. " >/dev/null 2>&1 </dev/null &")
  return slurm.SUCCESS
end

return slurm.SUCCESS
