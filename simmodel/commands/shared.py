"""What commands share: arguments, the policy and the run that they describe, and processes to run on."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from simmodel.commands.options import add_kind_options, kind_options, options_of, platform_for
from simmodel.commands.progress import add_progress
from simmodel.commands.values import at_least_one, one_of, seconds, seed, source
from simmodel.errors import InputError, optional_imports

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.commands.options import TakesArguments

__all__ = [
    "POLICIES",
    "add_backfill",
    "add_log",
    "add_machine",
    "add_policy",
    "add_rules",
    "add_seed",
    "add_trust",
    "add_until",
    "add_workers",
    "chosen_policy",
    "process_pool",
    "run_options",
    "see_working_folder",
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


def add_log(parser: TakesArguments) -> None:
    """Add the log that a command replays."""
    parser.add_argument("log", type=source, metavar="LOG", help="a file, or a name from 'simmodel list workloads'")


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`chosen_policy` reads."""
    policy = parser.add_argument_group("policy")
    policy.add_argument("--policy", metavar="NAME", help="a name from 'simmodel list policies' (default: easy)")
    policy.add_argument("--order", metavar="NAME", help="order of the queue, instead of --policy (default: fcfs)")
    add_backfill(policy, "backfilling, with --order (default: none)")
    policy.add_argument("--backfill-order", metavar="NAME", help="order in which EASY backfilling tries jobs")


def add_backfill(parser: TakesArguments, text: str, usual: str | None = None) -> None:
    """Add the kind of backfilling."""
    kinds = ("none", "easy", "conservative", "conservative-keep")
    parser.add_argument("--backfill", type=one_of(kinds), default=usual, metavar=f"{{{','.join(kinds)}}}", help=text)


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Add the platform, as :func:`run_options` reads it."""
    machine = parser.add_argument_group("platform")
    machine.add_argument(
        "--platform",
        type=source,
        metavar="NAME|FILE",
        help="a name from 'simmodel list platforms' or a file (default: the processors in the header of the log)",
    )
    machine.add_argument("--processors", type=at_least_one, metavar="N", help="replace those in the header of the log")


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add the options of the run, as :func:`run_options` reads them."""
    rules = parser.add_argument_group("simulation")
    add_kind_options(rules, options_of("jobs"))
    add_until(rules)
    add_seed(rules)
    add_progress(parser)


def add_until(parser: TakesArguments) -> None:
    """Add the end of the simulation."""
    parser.add_argument("--until", type=seconds, metavar="TIME", help="stop at this time")


def add_seed(parser: TakesArguments, text: str = "seed of all random numbers") -> None:
    """Add the seed."""
    parser.add_argument("--seed", type=seed, default=0, metavar="SEED", help=f"{text} (default: 0)")


def add_workers(parser: TakesArguments) -> None:
    """Add the processes of simulations, as :func:`process_pool` takes them."""
    parser.add_argument(
        "--workers", type=at_least_one, default=1, metavar="N", help="processes to run simulations on (default: 1)"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="run simulations on the Dask cluster of this scheduler (tcp://HOST:PORT)"
    )


def add_trust(parser: TakesArguments) -> None:
    """Add the option that lets a file name policies and processors that import code."""
    parser.add_argument(
        "--trust", action="store_true", help="let files name policies and processors as module:name, which imports code"
    )


def run_options(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Return the platform and the options of simulate(), from :func:`add_machine` and :func:`add_rules`.

    Raises
    ------
    InputError
        if the platform is unknown, runs no jobs, or does not have one of the options
    """
    platform, kind = (None, None) if options.platform is None else platform_for("jobs", options.platform)
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
    from simmodel.futures.executors import stop_workers
    from simmodel.futures.workers import worker_pool

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
