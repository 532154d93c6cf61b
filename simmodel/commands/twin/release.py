"""``simmodel twin release``: give everything back to the scheduler by hand."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments
from simmodel.commands.shared import TWIN

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin release twin.toml",)


add = arguments(TWIN, argument("--dry-run", "say what would be given back, and change nothing"))


def run(options: argparse.Namespace) -> None:
    """Release every job that is held or preferred for a twin.

    What users or administrators have changed since stays as it is, and is printed. A twin that is alive goes on: make
    its stop file first.
    """
    from simmodel.errors import SimmodelError
    from simmodel.twin.acting.performing import restore
    from simmodel.twin.config import read_config

    hands = read_config(options.config).hands(restoring=True)
    if options.dry_run:
        for job in hands.marked():
            how = "held" if job.held else f"preferred by {job.preference}" if job.preference else "not held any more"
            print(f"{job.job}: {f'left as it is: {job.changed}' if job.changed else how}")
        return
    found = restore(hands)
    print(f"gave {found.jobs:,} jobs back to the scheduler")
    for each in found.left:
        print(f"left as it is: {each}")
    if found.failed:
        raise SimmodelError(f"{found.failed:,} could not be given back: {found.why}")
