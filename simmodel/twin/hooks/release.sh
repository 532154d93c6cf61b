#!/bin/sh
# Written by simmodel twin install-hooks.
# Gives all jobs that are held for the twin back to Slurm, once after its heartbeat has gone stale.
heartbeat=HEARTBEAT
mkdir "$heartbeat.releasing" 2>/dev/null || exit 0
trap 'rmdir "$heartbeat.releasing"' EXIT
squeue --noheader --all --array --states=PENDING \
  --Format=JobID:24,ArrayJobID:24,ArrayTaskID:24,admin_comment:24 |
  while read -r job array task mark; do
    [ "$mark" = simmodel-held ] || continue
    case $task in N/A) ;; *) job=${array}_$task ;; esac
    scontrol update "JobId=$job" StartTime=now
  done
rm -f "$heartbeat"
