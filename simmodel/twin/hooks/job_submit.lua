-- Written by simmodel twin install-hooks.
-- Tells the twin's stream that jobs are submitted, and changes nothing about them.
-- In a file of your own that has these functions, call the script in the same way.

local script = SCRIPT

function slurm_job_submit(job, partitions, user)
  os.execute(script .. " >/dev/null 2>&1 </dev/null &") -- nothing of the job is part of it
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, user)
  os.execute(script .. " >/dev/null 2>&1 </dev/null &")
  return slurm.SUCCESS
end

return slurm.SUCCESS
