"""``simmodel twin run``: follow a cluster as a configuration says."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments, group
from simmodel.commands.shared import TRUST
from simmodel.commands.values import source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin run twin.toml",)


add = arguments(
    argument("config CONFIG", "the configuration (TOML)", source),
    TRUST,
    group("display", argument("-v --verbose", "log what happens, not only what goes wrong")),
)


def run(options: argparse.Namespace) -> None:
    """Follow a cluster as a configuration says, and write each decision into the audit log.

    It ends when its source is over, or by an interrupt or SIGTERM, and continues from the audit log when it is started
    again.
    """
    import signal
    from contextlib import ExitStack

    from simmodel.twin.config import read_config
    from simmodel.twin.logs import start_logging, stop_logging
    from simmodel.twin.routing.turnaround import Turnarounds
    from simmodel.twin.running import follow, opened
    from simmodel.twin.serving import StatusServer

    config = read_config(options.config, trust=options.trust)
    stopped: list[int] = []
    with ExitStack() as stack:
        stack.callback(stop_logging, start_logging("info" if options.verbose else "warning"))
        before = signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
        stack.callback(signal.signal, signal.SIGTERM, before)
        twin = stack.enter_context(opened(config, trust=options.trust))
        server = turnarounds = None
        if config.serve is not None:
            turnarounds = Turnarounds(config.serve.speed)
            server = stack.enter_context(StatusServer(twin.status, config.serve.port, answers=turnarounds.answer))
        where = "" if server is None else f", status at http://127.0.0.1:{server.port}"
        print(f"following {config.cluster}{where}", flush=True)
        follow(twin, lambda: bool(stopped), server, turnarounds)
        print(f"ended: {twin.advised:,} decisions, {twin.fallbacks:,} of them by the fallback", flush=True)
