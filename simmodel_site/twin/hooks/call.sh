#!/bin/sh
# Written by simmodel twin install-hooks. Tells a stream what Slurm did:
# it spends at most 50 ms on the stream and it always succeeds.
PYTHON -I -S -B TELL WHAT >/dev/null 2>&1 </dev/null
exit 0
