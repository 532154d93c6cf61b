"""What commands share: arguments, the policy that they describe, and which files can be written."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from simmodel.commands.options import add_kind_options, kind_options, options_of, platform_for
from simmodel.errors import InputError, missing_extra

if TYPE_CHECKING:
    from concurrent.futures import Executor

    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = [
    "add_log",
    "add_machine",
    "add_policy",
    "add_rules",
    "add_workers",
    "at_least_one",
    "check_outputs",
    "chosen_policy",
    "label",
    "needs",
    "process_pool",
    "run_options",
    "seconds",
    "see_working_folder",
    "seed",
    "split_names",
    "write_and_say",
]


# ---------------------------------------------------------------------- values


def seconds(text: str) -> float:
    """Read seconds > 0."""
    value = float(text)
    if not (value > 0 and isfinite(value)):
        raise argparse.ArgumentTypeError(f"seconds > 0 expected, found {text}")
    return value


def _whole_from(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"a whole number from {least} on expected, found {text!r}")
        return int(text)

    return read


seed = _whole_from(0)
at_least_one = _whole_from(1)


def split_names(text: str) -> list[str]:
    """Return the names of a list with commas between them, and let those of the working folder be found."""
    from simmodel.scheduling import registry

    names = registry.split_names(text)
    for name in names:
        see_working_folder(name)
    return names


# ---------------------------------------------------------------------- arguments


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add the log that a command reads."""
    parser.add_argument("log", metavar="LOG", help="a file, or a name of 'simmodel list workloads'")


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`chosen_policy` reads."""
    parser.add_argument("--policy", metavar="NAME", help="default: easy; see 'simmodel list policies'")
    parser.add_argument("--order", metavar="NAME", help="instead of --policy: the order of the queue (default: fcfs)")
    parser.add_argument(
        "--backfill",
        choices=("none", "easy", "conservative", "conservative-keep"),
        help="with --order: the backfilling (default: none)",
    )
    parser.add_argument("--backfill-order", metavar="NAME", help="the order in which easy backfilling tries jobs")


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Add what simulate() takes to say which machine runs."""
    machine = parser.add_argument_group("the machine")
    machine.add_argument("--platform", metavar="NAME|FILE", help="default: as many processors as the log says")
    machine.add_argument("--processors", type=int, metavar="N", help="default: what the header of the log says")


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add what simulate() takes beside machine, workload and policy."""
    rules = parser.add_argument_group("the rules")
    add_kind_options(rules, options_of("jobs"))
    rules.add_argument("--until", type=seconds, metavar="S", help="stop at this instant")
    rules.add_argument("--seed", type=seed, default=0, metavar="S", help="of all random numbers (default: 0)")
    rules.add_argument("--progress", action="store_true", help="show a bar")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the number of processes, which :func:`process_pool` reads."""
    parser.add_argument("--workers", type=at_least_one, default=1, metavar="N", help="processes (default: 1)")


def run_options(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Return the platform and the options that simulate() takes, of :func:`add_machine` and :func:`add_rules`.

    Raises
    ------
    InputError
        where the platform is not known, runs no jobs, or does not have one of the options
    """
    platform, kind = (None, None) if options.platform is None else platform_for("jobs", options.platform)
    found = kind_options(options, kind)
    if options.processors is not None:
        found["processors"] = options.processors
    return platform, found | {name: getattr(options, name) for name in ("until", "seed", "progress")}


@contextmanager
def process_pool(workers: int, apart: bool = False, most: int | None = None) -> Iterator[Executor | None]:
    """Give an executor of so many processes, and none where one is enough, unless it is to be ``apart`` from this.

    There are at most as many processes as there is to run, ``most``: all of them start at once.
    """
    workers = workers if most is None else max(1, min(workers, most))
    if workers == 1 and not apart:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(workers) as pool:
        yield pool


# ---------------------------------------------------------------------- policies and labels


def chosen_policy(options: argparse.Namespace) -> tuple[Any, str]:
    """Return the policy, as a name where one says it all, and what it is called."""
    from simmodel.policies.backfilling import Backfill
    from simmodel.scheduling.registry import policy

    given = [option for option in ("order", "backfill", "backfill_order") if getattr(options, option) is not None]
    if not given:
        name = "easy" if options.policy is None else options.policy
        see_working_folder(name)
        policy(name)
        return name, name
    if options.policy is not None:
        raise InputError(f"--policy or --{given[0].replace('_', '-')} expected, found both")
    order, candidates = options.order or "fcfs", options.backfill_order
    backfill = options.backfill or ("none" if candidates is None else "easy")
    built = Backfill(order, backfill, candidates=candidates)
    if candidates is None:
        return (order if backfill == "none" else f"{order}+{backfill}"), built.name
    return built, built.name


def see_working_folder(policy: str) -> None:
    """Let ``module:name`` name a policy in a file of the folder the command is given in."""
    if ":" in policy and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def label(log: str) -> str:
    """Return what a file's run is called: its name without the folder and the ending."""
    name = Path(log).name.removesuffix(".gz")
    return name.rpartition(".")[0] or name


# ---------------------------------------------------------------------- files


def write_and_say(
    said: Sequence[str],
    options: argparse.Namespace,
    writers: Mapping[str, Callable[[Path], object]],
    indent: str = "  ",
) -> None:
    """Write each file that an option names, and print the text with a line for each file.

    A run may have taken long: what came of it is shown even where a file cannot be written.
    """
    lines = list(said)
    try:
        for kind, write in writers.items():
            path = getattr(options, kind)
            if path is not None:
                write(path)
                lines.append(f"{indent}{kind} written to {path}")
    finally:
        print("\n".join(lines))


def check_outputs(options: argparse.Namespace, *names: str) -> None:
    """Refuse what cannot be written, before anything is simulated."""
    for name in names:
        path: Path | None = getattr(options, name)
        if path is None:
            continue
        if path.is_dir() or (name == "db" and path.exists() and not path.is_file()):  # a database replaces the file
            raise InputError("a file to write expected, found a folder or a device", source=str(path))
        if not path.absolute().parent.is_dir():
            raise InputError(f"cannot be written: there is no folder {path.absolute().parent}", source=str(path))
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise InputError("cannot be written: permission denied", source=str(path))
        if name == "plot":
            _check_picture(path)
    if getattr(options, "progress", False):
        needs("tqdm", "--progress")


def _check_picture(path: Path) -> None:
    needs("matplotlib", "--plot")
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().removeprefix(".") not in kinds:
        raise InputError(f"a picture (.{', .'.join(kinds)}) expected, found {path.suffix!r}", source=str(path))


def needs(module: str, option: str) -> None:
    """Refuse an option whose package is not installed."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise InputError(str(missing_extra(module)), place=option)
