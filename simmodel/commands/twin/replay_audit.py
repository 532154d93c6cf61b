"""``simmodel twin replay-audit``: make each decision of an audit log again."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments
from simmodel.commands.shared import TRUST
from simmodel.commands.values import source

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin replay-audit audit.jsonl",)


add = arguments(argument("audit AUDIT", "the audit log of a twin", source), TRUST)


def run(options: argparse.Namespace) -> None:
    """Make each decision of an audit log again, from the events before it, and compare state and starts."""
    from simmodel.errors import SimmodelError
    from simmodel.twin.course import replay_audit

    found = replay_audit(options.audit, trust=options.trust)
    differ = found.decisions - found.reproduced
    print(f"{found.decisions:,} decisions, {found.reproduced:,} reproduced, {differ:,} differ")
    if found.fallbacks:
        print(f"{found.fallbacks:,} of them by the fallback")
    if differ:
        raise SimmodelError(found.first)
