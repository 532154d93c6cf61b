#!/bin/sh
# Written by simmodel twin install-hooks.
# Gives all jobs that are held for the twin back to Slurm, once after its heartbeat has gone stale.
heartbeat=HEARTBEAT
SLURM_TIME_FORMAT=%s
export SLURM_TIME_FORMAT
mkdir "$heartbeat.releasing" 2>/dev/null || exit 0
trap 'rmdir "$heartbeat.releasing"' EXIT
squeue --noheader --all --array --states=PENDING \
  --Format=JobID:24,ArrayJobID:24,ArrayTaskID:24,EligibleTime:24,admin_comment:40 |
  while read -r job array task begin mark; do
    [ "$mark" = "simmodel-held@$begin" ] || continue # its begin time is its user's
    case $task in N/A) ;; *) job=${array}_$task ;; esac
    scontrol update "JobId=$job" StartTime=now "AdminComment=simmodel-released@$begin"
  done
rm -f "$heartbeat"
