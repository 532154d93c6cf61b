"""``simmodel twin watchdog``: give everything back to the scheduler when the twin is gone."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments
from simmodel.commands.shared import TWIN

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin watchdog twin.toml",)


add = arguments(TWIN, argument("--interval S", "seconds between looks (%(default)s)", float, default=1.0))


def run(options: argparse.Namespace) -> None:
    """Watch the heartbeat of a twin and, while there is none, release every job that is held for it.

    Run it beside the twin, as a service of its own; it ends by an interrupt or SIGTERM, and releases nothing then.
    """
    import signal
    from pathlib import Path

    from simmodel.errors import InputError
    from simmodel.twin.acting.heartbeat import Pulse
    from simmodel.twin.acting.watchdog import Watchdog
    from simmodel.twin.config import read_config
    from simmodel.twin.logs import start_logging, stop_logging

    config = read_config(options.config)
    act, folder = config.act, Path(config.folder)
    if act is None:
        raise InputError("missing table: nothing is held for this twin", str(options.config), "act")
    if not options.interval > 0:
        raise InputError(f"must be a number > 0 (s), got {options.interval!r}", place="--interval")
    pulse = Pulse(folder / act.heartbeat, act.stale_after)
    dog = Watchdog(config.hands(restoring=True), pulse, folder / act.stop_file, config.cluster)
    stopped: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    logging = start_logging("warning")
    try:
        print(f"watching {pulse.path}", flush=True)
        dog.run(lambda: bool(stopped), options.interval)
        print(f"ended: gave {dog.restored:,} jobs back")
    finally:
        stop_logging(logging)
        signal.signal(signal.SIGTERM, before)
