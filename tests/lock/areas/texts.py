"""What commands and summaries say."""

from __future__ import annotations

import re
from typing import Any

from .. import api
from ..cases import text

MASKS = (
    (re.compile(r"(decisions[^\n]*?, ).*(seconds each|\(min / mean / max\))"), r"\1TIME"),
    (re.compile(r"(a decision took ).*"), r"\1TIME"),
)


def masked(said: str) -> str:
    """Return a text without what the clock had a part in, each line without blanks at its end."""
    for pattern, instead in MASKS:
        said = pattern.sub(instead, said)
    return "\n".join(line.rstrip() for line in said.splitlines())


def command(*arguments: str, before: Any = None) -> str:
    if before is not None:
        before()
    return masked(api.command(*arguments))


def add() -> None:
    """Add the texts."""
    for kind in ("policies", "brokers", "platforms", "workloads", "formats", "generators"):
        text("texts-commands", f"list-{kind}", lambda kind=kind: command("list", kind))
    text("texts-commands", "batch", lambda: command("batch", "lublin-128-week", "--policy", "easy"))
    text("texts-commands", "compare", lambda: command("compare", "lublin-128-week", "--policies", "fcfs,easy,sjf+easy"))
    text("texts-commands", "machine", lambda: command("machine", "hetsim-slow", "fork-join-dressed", "--critical"))
    text(
        "texts-commands",
        "explore",
        lambda: command(
            "explore",
            "--platforms",
            "hetsim-slow,hetsim-fast",
            "--workloads",
            "random:tasks=12",
            "--policies",
            "hrr,heft",
            "--seeds",
            "3",
        ),
    )
    text(
        "texts-commands",
        "meta",
        lambda: command("meta", "schedtwin", "--clusters", "32,64", "--broker", "random,sgs-t", "--repeat", "2"),
    )
    text("texts-commands", "portfolio", lambda: command("portfolio", "probe-4"))
    text(
        "texts-commands",
        "whatif",
        lambda: command("whatif", "s.json", "--policies", "fcfs,easy,sjf+easy", before=_snapshot),
    )
    text("texts-commands", "generate", lambda: command("generate", "poisson", "--jobs", "5", "--processors", "4"))


def _snapshot() -> None:
    api.command("batch", "lublin-128-week", "--snapshot", "s.json", "--at", "300000")
