#!/bin/sh
# Written by simmodel twin install-hooks.
# Gives all jobs that are held for the twin back to PBS, once after its heartbeat has gone stale.
heartbeat=HEARTBEAT
mkdir "$heartbeat.releasing" 2>/dev/null || exit 0
trap 'rmdir "$heartbeat.releasing"' EXIT
TZ=UTC
export TZ
now=$(date +%Y%m%d%H%M.%S)
qselect -s W -l simmodel_mark.eq.simmodel-held |
  while read -r job; do
    qalter -a "$now" "$job"
  done
rm -f "$heartbeat"
