"""How long a script of ``simmodel twin install-hooks`` keeps Slurm: stream there, frozen (it never answers), away.

Run ``python benchmarks/twin_hooks.py [CALLS]`` (default: 300 of each). The limit is 150 ms at the 99th percentile with
the stream frozen, on a machine with nothing else to do; starting ``sh`` and Python alone is measured beside it.

Measured with real-time priority (``chrt -f 10``), so undisturbed: 64 ms at the 99th percentile with the stream frozen
(50 of them are the budget of the stream), 20 with it there, 19 with it away; ``sh`` and Python alone take 7.6. At
a high priority (nice -19) beside ten busy processes on two cores: 100 ms in the median and 140 at the 99th percentile.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from simmodel_site.twin import RedisSettings
from simmodel_site.twin.hooks import install_hooks


def timed(command: Sequence[str | Path], calls: int) -> list[float]:
    """Return the wall-clock seconds of each call, sorted."""
    found = []
    for job in range(1, calls + 1):
        begin = time.perf_counter()
        subprocess.run(command, env={"SLURM_JOB_ID": str(job)}, check=True)
        found.append(time.perf_counter() - begin)
    return sorted(found)


def show(what: str, seconds: Sequence[float]) -> None:
    """Print the least, the median and the 99th percentile."""
    least, median, high = (1000 * seconds[int(share * (len(seconds) - 1))] for share in (0.0, 0.5, 0.99))
    print(f"{what:>22}: {least:6.1f} ms least, {median:6.1f} median, {high:6.1f} at the 99th percentile", flush=True)


def answer(server: socket.socket) -> None:
    """Say to each client that its entry was added."""
    while True:
        client, _ = server.accept()
        with client, suppress(OSError):
            while client.recv(65536):
                client.sendall(b"$3\r\n1-1\r\n")


def main(calls: int = 300) -> None:
    """Print the figures."""
    show("sh and Python alone", timed(["sh", "-c", "/usr/bin/python3 -I -S -B -c pass; exit 0"], calls))
    with TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0), backlog=calls + 10) as server:
        url = f"redis://127.0.0.1:{server.getsockname()[1]}"
        script = Path(folder, "prolog-slurmctld")
        install_hooks(folder, "alps", RedisSettings(url=url, password_variable=None))
        show("frozen", timed([script], calls))
        Path(folder, "spool", "entries").unlink()
        server_thread = threading.Thread(target=answer, args=(server,), daemon=True)
        server_thread.start()
        show("there", timed([script], calls))
        install_hooks(folder, "alps", RedisSettings(url="redis://127.0.0.1:1", password_variable=None))
        show("away", timed([script], calls))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
