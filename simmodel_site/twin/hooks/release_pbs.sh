#!/bin/sh
# Written by simmodel twin install-hooks.
# Gives all jobs that are held for the twin back to PBS, once after its heartbeat has gone stale.
heartbeat=HEARTBEAT
mkdir "$heartbeat.releasing" 2>/dev/null || exit 0
trap 'rmdir "$heartbeat.releasing"' EXIT
TZ=UTC
export TZ
now=$(date +%Y%m%d%H%M.%S)
qselect -s W |
  while read -r job; do
    until=$(qstat -f -F json "$job" | sed -n 's/.*"simmodel_mark" *: *"simmodel-held@\([0-9]*\)".*/\1/p')
    [ -n "$until" ] || continue
    at=$(date -d "@$until" +%Y%m%d%H%M.%S)
    qselect -s W -a ".eq.$at" | grep -qxF "$job" || continue # its execution time is its user's
    qalter -a "$now" "$job"
  done
rm -f "$heartbeat"
