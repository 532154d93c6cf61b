"""Common parts of commands: arguments, the policy and the run that they describe, and processes to run on."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.arguments import Declared, argument, arguments, group
from simmodel.commands.options import kind_arguments, kind_options, platform_for
from simmodel.commands.progress import PROGRESS
from simmodel.commands.values import at_least_one, seconds, seed, source
from simmodel.foundation.errors import InputError, optional_imports

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.platform.cluster import ClusterSpec

__all__ = [
    "FORCE",
    "HETSIM",
    "HORIZON",
    "LOG",
    "MACHINE",
    "POLICIES",
    "POLICY",
    "RULES",
    "SEED",
    "TRUST",
    "TWIN",
    "UNTIL",
    "WORKERS",
    "WORKLOAD",
    "backfill",
    "chosen_platform",
    "chosen_policy",
    "kept_runs",
    "kept_study",
    "process_pool",
    "run_options",
    "see_working_folder",
    "seed_of",
    "split_names",
]

POLICIES = "names separated by commas; see 'simmodel list policies'"


def split_names(text: str) -> list[str]:
    """Return the names of a list separated by commas; modules of the working folder can be named in it."""
    from simmodel.scheduling import registry

    names = registry.split_names(text)
    for name in names:
        see_working_folder(name)
    return names


# ---------------------------------------------------------------------- arguments


LOG = argument(
    "log LOG", "a file, a name from 'simmodel list workloads', or a generator such as lublin:jobs=600", source
)
"""The log that a command replays."""


def backfill(text: str, usual: str | None = None) -> Declared:
    """Declare the kind of backfilling."""
    return argument("--backfill {none,easy,conservative,conservative-keep}", text, default=usual)


POLICY = group(
    "policy",
    argument("--policy NAME", "a name from 'simmodel list policies' (default: easy)"),
    argument("--order NAME", "order of the queue, instead of --policy (default: fcfs)"),
    backfill("backfilling, with --order (default: none)"),
    argument("--backfill-order NAME", "order in which EASY backfilling tries jobs"),
)
"""The options that :func:`chosen_policy` reads."""

MACHINE = group(
    "platform",
    argument(
        "--platform NAME|FILE",
        "a name from 'simmodel list platforms' or a file (default: the processors in the header of the log)",
        source,
    ),
    argument("--processors N", "replace those in the header of the log", at_least_one),
)
"""The platform, as :func:`run_options` reads it."""

UNTIL = argument("--until TIME", "stop at this time", seconds)


def seed_of(text: str) -> Declared:
    """Declare the seed."""
    return argument("--seed SEED", f"{text} (default: 0)", seed, default=0)


SEED = seed_of("seed of all random numbers")

RULES = arguments(group("simulation", kind_arguments("jobs"), UNTIL, SEED), PROGRESS)
"""The options of the run, as :func:`run_options` reads them."""

WORKERS = arguments(
    argument("--workers N", "processes to run simulations on (default: 1)", at_least_one, default=1),
    argument("--dask ADDRESS", "run simulations on the Dask cluster of this scheduler (tcp://HOST:PORT)"),
)
"""The processes of simulations, as :func:`process_pool` takes them."""

TRUST = argument("--trust", "let files name policies and processors as module:name, which imports code")

TWIN = argument("config CONFIG", "the configuration of the twin (TOML)", source)

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
    return platform if options.processors is None else options.processors


def run_options(options: argparse.Namespace, read: ClusterSpec | None = None) -> tuple[Any, dict[str, Any]]:
    """Return the platform and the options of simulate(), from :data:`MACHINE` and :data:`RULES`.

    ``read`` is the platform if it was read together with the log.

    Raises
    ------
    InputError
        if the platform is unknown, runs no jobs, or does not have one of the options
    """
    platform, kind = (read, None)
    if options.platform is not None and read is None:
        platform, kind = platform_for("jobs", options.platform)
    found = kind_options(options, kind)
    if options.processors is not None:
        found["processors"] = options.processors
    return platform, found | {name: getattr(options, name) for name in ("until", "seed", "progress")}


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

    given = [option for option in ("order", "backfill", "backfill_order") if getattr(options, option) is not None]
    if not given:
        name = "easy" if options.policy is None else options.policy
        see_working_folder(name)
        policy(name)
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
