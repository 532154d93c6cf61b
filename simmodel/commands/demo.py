"""``simmodel demo``: five things that simmodel does, each by the command that anybody would type."""

from __future__ import annotations

import argparse
import re
import shlex
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from simmodel.commands.outputs import on_terminal
from simmodel.commands.values import argument, command
from simmodel.foundation.errors import InputError

__all__ = ["STEPS", "Step", "run"]


class Step(NamedTuple):
    """One thing to see: a title, commands, files for the last, and what to tell of the rows that it prints."""

    title: str
    commands: tuple[str, ...]
    files: tuple[str, ...]
    found: str


STEPS = (
    Step(
        "a log, and its page",
        ("batch lublin-128-week",),
        ("--html log.html", "--plot log.png"),
        "mean wait {mean wait[0]} under EASY, utilisation {utilisation[0]}",
    ),
    Step(
        "a what-if, from the fourth day on",
        ("batch lublin-128-week --at 4d --snapshot now.json", "whatif now.json --policies easy,sjf+easy"),
        ("--table whatif.csv", "--plot whatif.png"),
        "mean wait {easy[2]} under easy, {sjf+easy[2]} with the shortest job first",
    ),
    Step(
        "tasks on a machine with an FPGA",
        ("machine fpga-server fork-join-dressed --policy heft",),
        ("--html machine.html", "--plot machine.png"),
        "makespan {makespan[0]}, speedup over the best processor alone {speedup over the best processor alone[0]}",
    ),
    Step(
        "a day on a grid of 30 sites",
        ("grid tiers-30",),
        ("--html grid.html", "--plot grid.png"),
        "mean wait {mean wait[0]}, utilisation {utilisation[0]}; {all[5]} of files came to the sites",
    ),
    Step(
        "a digital twin that advises a cluster",
        ("twin replay schedtwin",),
        ("--html twin.html", "--plot twin.png"),
        "mean wait {mean wait[0]} under easy, {mean wait[1]} as the twin advises",
    ),
)
"""What is shown; the commands of packages that are not installed are left out."""

NEXT = """\
next:
  open {page} in a browser, zoom in, and click on a job
  simmodel batch my-log.swf --html my-log.html
  simmodel compare lublin-128-week --policies fcfs,easy,sjf+easy
  simmodel help"""
_WIDE = 78  # characters of a command, above which it stands on several lines


@command(
    "demo",
    argument("folder FOLDER", "of the files (default: simmodel-demo)", Path, nargs="?", default=Path("simmodel-demo")),
    examples=("simmodel demo",),
)
def run(options: argparse.Namespace) -> int:
    """Show five things in a minute: a log, a what-if, a machine, a grid and a twin, each with a page or a picture.

    The folder is made if it does not exist; files of an earlier demo are replaced, and there must be no others.
    """
    from simmodel.commands import COMMANDS, others

    folder, known = options.folder, {*COMMANDS, *others()}
    own = {word for step in STEPS for line in (*step.commands, *step.files) for word in line.split() if "." in word}
    if folder.exists() and (foreign := sorted({each.name for each in folder.iterdir()} - own)):
        raise InputError(f"must be a new folder, or that of an earlier demo, got one with {foreign[0]}", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    left_out = () if find_spec("matplotlib") else ("--plot",)
    for number, step in enumerate(STEPS, 1):
        print(f"{number}. {step.title}", flush=True)
        if step.commands[0].split()[0] not in known:
            print("   left out: its command belongs to a package that is not installed\n")
            continue
        files = [each for each in step.files if not each.startswith(left_out)]
        for line in (*step.commands[:-1], " ".join([step.commands[-1], *files])):
            words = [str(folder / word) if word in own else word for word in line.split()]
            shown = f"   $ simmodel {shlex.join(words)}"
            print(shown if len(shown) <= _WIDE else shown.replace(" --", " \\\n       --"), flush=True)
            status, rows = _run(words)
            if status:
                return status
        written = [str(folder / each.split()[1]) for each in files]
        print(f"   {step.found.format_map(rows)}\n   -> {', '.join(written)}\n")
    print(NEXT.format(page=folder / "log.html"))
    return 0


def _run(words: list[str]) -> tuple[int, dict[str, list[str]]]:
    """Run a command; return its status and the rows that it prints: their cells by the first one."""
    from simmodel.commands.parser import command_parser

    perform, parser = command_parser(words[0])
    options = parser.read(words[1:])
    with redirect_stdout(StringIO()) as text, on_terminal(options):
        status = perform(options) or 0
    cells = (re.split(r"\s{2,}", line.strip()) for line in text.getvalue().splitlines())
    return status, {first: rest for first, *rest in cells}
