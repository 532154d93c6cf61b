"""Common parts of commands: arguments, the policy and the run that they describe, and processes to run on.

The spelling, values and help of an option follow from the typed options of its kind
(:mod:`simmodel.platform.options`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from simmodel.commands.outputs import PROGRESS
from simmodel.commands.values import (
    Declared,
    TakesArguments,
    argument,
    arguments,
    at_least_one,
    group,
    number,
    one_of,
    seconds,
    seed,
    share,
    source,
    whole,
)
from simmodel.foundation.errors import InputError, optional_imports
from simmodel.platform.options import ClusterOptions, MachineOptions, Options

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.platform.cluster import ClusterSpec
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.systems.kinds import Kind

__all__ = [
    "ELSEWHERE",
    "FORCE",
    "HETSIM",
    "HORIZON",
    "LOG",
    "MACHINE",
    "POLICIES",
    "POLICY",
    "READING",
    "REPAIR",
    "RULES",
    "SAMPLE",
    "SEED",
    "SET",
    "STOP",
    "TOO_LONG",
    "TRUST",
    "UNTIL",
    "WORKERS",
    "WORKLOAD",
    "backfill",
    "changed_platform",
    "chosen_platform",
    "chosen_policy",
    "kept_runs",
    "kept_study",
    "kind_arguments",
    "kind_options",
    "options_of",
    "platform_for",
    "process_pool",
    "run_options",
    "see_working_folder",
    "seed_of",
    "seeds",
    "split_names",
    "with_changes",
]


Runs = Literal["jobs", "tasks"]
_EXPECTED = {"jobs": "a platform that runs jobs", "tasks": "a platform that runs tasks"}
ELSEWHERE = {"jobs": "'simmodel batch' replays logs on it", "tasks": "'simmodel machine' runs tasks on it"}
"""Where a platform is of use, by what runs on it."""
_READ_AS = {int: (whole, "N"), float: (number("a number", lambda value: True), "X"), str: (str, "TEXT")}


def options_of(runs: Runs) -> list[type[Options]]:
    """Return the options of the kinds of system that run jobs, or tasks.

    >>> [each.__name__ for each in options_of("tasks")][:1]
    ['MachineOptions']
    """
    usual = ClusterOptions if runs == "jobs" else MachineOptions
    if "simmodel.systems.kinds" not in sys.modules:  # so no kind was registered; importing it costs more than the help
        return [usual]
    from simmodel.systems.kinds import added_kinds

    return [usual, *(kind.options for kind in added_kinds() if kind.work == runs)]


def kind_arguments(*of: Runs | type[Options]) -> Declared:
    """Declare every option that a text can give of these classes, or of the kinds that run such work.

    :func:`kind_options` reads those that were given. An option that the command already has is not added again; one
    that is on by default is turned off by ``--no-NAME``.

    >>> from simmodel.systems.kinds import kind_named
    >>> parser = argparse.ArgumentParser()
    >>> kind_arguments("tasks")(parser)
    >>> kind_options(parser.parse_args(["--no-contention", "--decide", "ready"]), kind_named("machine"))
    {'contention': False, 'decide': 'ready'}
    """

    def add(parser: TakesArguments) -> None:
        for cls in (cls for each in of for cls in (options_of(each) if isinstance(each, str) else [each])):
            hints = get_type_hints(cls)
            for field in attrs.fields(cls):
                how = _argument(cls, field, hints[field.name])
                usual = f"--{'no-' if field.default is True else ''}{field.name.replace('_', '-')}"
                flag = field.metadata.get("flag", usual)  # one of its own may be given several times
                if how is not None:
                    with suppress(argparse.ArgumentError):  # the command, or another kind, has this option
                        parser.add_argument(flag, dest=f"{flag} {field.name}", default=argparse.SUPPRESS, **how)

    return add


def _argument(cls: type[Options], field: attrs.Attribute[Any], hint: Any) -> dict[str, Any] | None:
    """Return how ``argparse`` reads an option; ``None`` if no text can give it."""
    text = field.metadata.get("help")
    if hint is bool:
        return {"action": "store_false" if field.default is True else "store_true", "help": text}
    if "text" in field.metadata:
        several = {"action": "append"} if "flag" in field.metadata else {}
        return {"metavar": field.metadata["text"], "help": text, **several}
    choices = [value for value in cls.choices(field.name) if value is not None]
    if choices:
        return {"type": one_of(choices), "metavar": f"{{{','.join(choices)}}}", "help": text}
    arms = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for kind, (read, metavar) in _READ_AS.items():
        if kind in arms:
            return {"type": read, "metavar": metavar, "help": text}
    return None


def kind_options(options: argparse.Namespace, kind: Kind | None = None) -> dict[str, Any]:
    """Return the options that were given, for a system of a kind; default: a cluster.

    Raises
    ------
    InputError
        if the kind does not have one of them
    """
    from simmodel.systems.kinds import kind_named

    own = kind_named("cluster") if kind is None else kind
    found = {}
    for given, value in vars(options).items():
        flag, _, name = given.partition(" ")
        if name:
            if not own.options.takes(name):
                raise InputError(f"a {own.name} has no option {flag}")
            found[name] = value
    return found


def platform_for(runs: Runs, name: str, *, trust: bool = False) -> tuple[Any, Kind]:
    """Return the platform of a name or a file, and its kind; ``trust`` is that of :func:`load_platform`.

    Raises
    ------
    InputError
        if the platform is unknown, or does not run jobs, or tasks, as the command does

    >>> platform_for("jobs", "kth-sp2")[1].name
    'cluster'
    """
    from simmodel.catalogue import load_platform
    from simmodel.systems.kinds import kind_of_platform, work_of

    spec = load_platform(name, trust=trust, machine=runs == "tasks")
    kind, found = kind_of_platform(spec), work_of(spec)
    if found != runs:
        raise InputError(f"must be {_EXPECTED[runs]}, got a {kind.name}: {ELSEWHERE[found]}", name)
    return spec, kind


POLICIES = "names separated by commas; see 'simmodel list policies'"


def split_names(text: str) -> list[str]:
    """Return the names of a list separated by commas; modules of the working folder can be named in it."""
    from simmodel.scheduling import registry

    names = registry.split_names(text)
    for name in names:
        see_working_folder(name)
    return names


# ---------------------------------------------------------------------- arguments


REPAIR = argument("--repair", "repair negative sizes and run times in workflows, and count them")
"""How workflows are read."""

READING = arguments(
    argument("--skip-bad", "pass over lines of logs that cannot be read, and count them"),
    argument("--timezone ZONE", "of local times in logs, such as Europe/Paris (default: UTC)"),
    REPAIR,
)
"""How logs are read: :func:`simmodel.cli.main` says so to all readers."""

LOG = arguments(
    argument(
        "log LOG", "a file, a name from 'simmodel list workloads', or a generator such as lublin:jobs=600", source
    ),
    READING,
)
"""The log that a command replays, and how it is read."""


def backfill(text: str, usual: str | None = None) -> Declared:
    """Declare the kind of backfilling."""
    kinds = ("none", "easy", "conservative", "conservative-keep")
    return argument("--backfill KIND", f"{', '.join(kinds)}: {text}", one_of(kinds), default=usual)


POLICY = group(
    "policy",
    argument("--policy NAME", "a name from 'simmodel list policies' (default: easy)"),
    argument("--order NAME", "order of the queue, instead of --policy (default: fcfs)"),
    backfill("backfilling, with --order (default: none)"),
    argument("--backfill-order NAME", "order in which EASY backfilling tries jobs"),
)
"""The options that :func:`chosen_policy` reads."""

SET = argument(
    "--set PATH=VALUE",
    "change the platform: nodes=+20, partitions.batch.max_time=12h, sites.BNL.speed=x1.2, queues.long=none; may be "
    "repeated",
    dest="changes",
    action="append",
    default=[],
)
"""Changes of the platform of a command, as :func:`changed_platform` makes them."""

MACHINE = group(
    "platform",
    argument(
        "--platform NAME|FILE",
        "a name from 'simmodel list platforms' or a file (default: the processors in the header of the log)",
        source,
    ),
    argument("--processors N", "replace those in the header of the log", at_least_one),
    SET,
)
"""The platform, as :func:`run_options` reads it."""

UNTIL = argument("--until TIME", "stop at this time", seconds)


def seeds(text: str) -> int | list[int]:
    """Read the number of seeds, or the seeds themselves.

    >>> seeds("5"), seeds("3,7")
    (5, [3, 7])
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    several = "," in text
    if not parts or not all(part.isdecimal() for part in parts) or (not several and int(parts[0]) < 1):
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, or seeds separated by commas, got {text!r}")
    numbers = [int(part) for part in parts]
    if len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(f"must name each seed once, got {text!r}")
    return numbers if several else numbers[0]


STOP = arguments(
    argument("--stop RULE", "add seeds until 'wait_mean ± 5 %%' or 'wait_mean decided'"),
    argument("--budget N", "with --stop, the largest number of seeds (default: 1000)", at_least_one),
)
"""When a sequence of seeds ends."""

SAMPLE = group(
    "sample",
    argument("--baseline NAME", "the policy or machine that others are compared with (default: the first)"),
    argument(
        "--resample {users,shaken,weeks}",
        "intervals from one log: its users drawn anew by whole weeks, its submit times shaken (sensitivity, not "
        "confidence), or the weeks of one run",
        one_of(["users", "shaken", "weeks"]),
    ),
    argument("--runs N", "with --resample users or shaken, how many (default: 20)", at_least_one),
    argument("--seeds N|A,B,C", "number of seeds of drawn work, or the seeds", seeds),
    STOP,
    argument("--level P", "confidence level of the intervals (default: 0.95)", share, default=0.95),
)
"""Where the sample of a comparison comes from."""


def seed_of(text: str, usual: str | None = None) -> Declared:
    """Declare ``--seed``; ``usual`` says where the seed is from if it is not given (default: it is 0)."""
    return argument("--seed SEED", f"{text} (default: {usual or 0})", seed, default=0 if usual is None else None)


SEED = seed_of("seed of all random numbers")

RULES = arguments(group("simulation", kind_arguments("jobs"), UNTIL, SEED), PROGRESS)
"""The options of the run, as :func:`run_options` reads them."""

WORKERS = arguments(
    argument("--workers N", "processes to run simulations on (default: 1)", at_least_one, default=1),
    argument("--dask ADDRESS", "run simulations on the Dask cluster of this scheduler (tcp://HOST:PORT)"),
)
"""The processes of simulations, as :func:`process_pool` takes them."""

TRUST = argument("--trust", "let files name policies and processors as module:name, which imports code")

WORKLOAD = "a file, a name from 'simmodel list workloads', or a generator such as layered:n=40,fat=0.5"

HETSIM = argument("--config FILE", "HetSim's configuration: ranges of drawn work, reconfiguration", source)
"""The configuration that completes a machine or its work."""

HORIZON = argument("--horizon TIME", "how far to simulate (default: to the end)", seconds)


FORCE = argument("--force", "go on with a study of another model, record or code")


def kept_study(after: str) -> Declared:
    """Declare the file that keeps the runs; ``after`` states how they go on after an interrupt."""
    text = f"keep the runs in this SQLite file as they end; after an interrupt {after}"
    return arguments(argument("--study FILE", text, source), FORCE)


def chosen_platform(options: argparse.Namespace) -> Any:
    """Return the number of processors or the platform of :data:`MACHINE`; ``None``: that of the log."""
    platform = None if options.platform is None else platform_for("jobs", options.platform)[0]
    return changed_platform(options, platform if options.processors is None else options.processors)


TOO_LONG = argument(
    "--too-long {reject,cut,split}",
    "jobs that request more time than the limit of their partition or queue: reject them (default), cut them to it, or "
    "split them into parts that follow each other",
)
"""What becomes of jobs that the limits of a platform exclude, as :func:`run_options` reads it."""


def changed_platform(
    options: argparse.Namespace, platform: GivenPlatform, changes: Mapping[str, str] | None = None
) -> GivenPlatform:
    """Return a platform with changes, by default those of :data:`SET`; ``None``: that of the header of the log.

    Raises
    ------
    InputError
        a change is wrong, or there are several logs and no platform
    """
    wanted = options.changes if changes is None else changes
    if not wanted:
        return platform
    from simmodel.runs.changes import changed

    logs = getattr(options, "log", None)
    first, *more = logs if isinstance(logs, list) else [logs]
    if more and platform is None:
        raise InputError(
            "needs --platform or --processors, since the logs may be of different machines", place="--set, --case"
        )
    return changed(platform, wanted, log=first)


def with_changes(options: argparse.Namespace, title: str) -> str:
    """Return the title of a run, which says what :data:`SET` changes.

    >>> with_changes(argparse.Namespace(changes=["nodes=+20"]), "log under easy")
    'log under easy, nodes=+20'
    """
    return ", ".join([title, *options.changes])


def run_options(options: argparse.Namespace, read: ClusterSpec | None = None) -> tuple[Any, dict[str, Any]]:
    """Return the platform and the options of simulate(), from :data:`MACHINE` and :data:`RULES`.

    ``read`` is the platform if it was read together with the log.

    Raises
    ------
    InputError
        if the platform is unknown, runs no jobs, or does not have one of the options
    """
    platform: GivenPlatform = read
    kind = None
    if options.platform is not None and read is None:
        platform, kind = platform_for("jobs", options.platform)
    found = kind_options(options, kind)
    if options.processors is not None and options.changes:
        from simmodel.runs.changes import changed

        platform = changed(platform or options.processors, [f"processors={options.processors}"])
    elif options.processors is not None:
        found["processors"] = options.processors
    if getattr(options, "too_long", None) is not None:
        found["too_long"] = options.too_long
    return changed_platform(options, platform), found | {
        name: getattr(options, name) for name in ("until", "seed", "progress")
    }


@contextmanager
def process_pool(
    options: argparse.Namespace, apart: bool = False, most: int | None = None
) -> Iterator[Executor | None]:
    """Yield an executor of processes, or ``None`` if one process is enough and need not be ``apart`` from this one.

    With ``--dask`` it is that of a Dask cluster, which goes on afterwards.

    There are at most ``most`` processes, the number of simulations, since all of them start at once. An error or an
    interrupt here ends them at once, as does the end of this process; they ignore interrupts themselves.
    """
    if options.dask is not None:
        with _dask_executor(options) as executor:
            yield executor
        return
    workers = options.workers if most is None else max(1, min(options.workers, most))
    if workers == 1 and not apart:
        yield None
        return
    from simmodel.foundation.workers import worker_pool
    from simmodel.futures.executors import stop_workers

    with worker_pool(workers) as pool:
        try:
            yield pool
        except BaseException:
            stop_workers(pool)
            raise


@contextmanager
def _dask_executor(options: argparse.Namespace) -> Iterator[Executor]:
    if options.workers != 1:
        raise InputError("--workers and --dask exclude each other")
    with optional_imports():
        import distributed
    make: Any = distributed.Client
    try:
        client = make(options.dask, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(
            f"must be the address of a Dask scheduler, got {options.dask!r}: {error}", place="--dask"
        ) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"the Dask cluster at {options.dask} has no workers", place="--dask")
        yield client.get_executor()


@contextmanager
def kept_runs(path: Path | None, after: str) -> Iterator[None]:
    """Say at an interrupt how many runs a study has, and how they go on."""
    try:
        yield
    except KeyboardInterrupt:
        if path is not None and path.exists():
            from simmodel.experiments.trials import Study

            counts = Study(path).counts
            kept = f"{counts['finished'] + counts['failed']:,} runs are kept"
            print(f"\ninterrupted: {kept}; {after}", file=sys.stderr, end="")
        raise


# ---------------------------------------------------------------------- policies


def chosen_policy(options: argparse.Namespace) -> tuple[Any, str]:
    """Return the policy, as a name if one describes it fully, and its name."""
    from simmodel.policies.backfilling import Backfill
    from simmodel.scheduling.registry import policy
    from simmodel.systems.kinds import kind_named

    given = [option for option in ("order", "backfill", "backfill_order") if getattr(options, option) is not None]
    if not given:
        name = "easy" if options.policy is None else options.policy
        see_working_folder(name)
        policy(name, kind_named("cluster").asks)
        return name, name
    if options.policy is not None:
        raise InputError(f"--policy and --{given[0].replace('_', '-')} exclude each other")
    order, candidates = options.order or "fcfs", options.backfill_order
    backfill = options.backfill or ("none" if candidates is None else "easy")
    if candidates is not None and backfill != "easy":
        raise InputError(f"--backfill-order needs --backfill easy, got {backfill}")
    built = Backfill(order, backfill, candidates=candidates)
    if candidates is None:
        return (order if backfill == "none" else f"{order}+{backfill}"), built.name
    return built, built.name


def see_working_folder(name: str = ":") -> None:
    """Let ``module:name`` name something in a file of the working folder."""
    if ":" in name and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
