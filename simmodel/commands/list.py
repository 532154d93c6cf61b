"""``simmodel list``: say what there is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("list", help="say what there is", description=run.__doc__)
    parser.add_argument("kind", choices=tuple(_LISTS))
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Say which policies, platforms, workloads, formats or generators there are."""
    rows = _LISTS[options.kind]()
    width = max((len(name) for name in rows), default=0)
    for name, description in rows.items():
        print(f"{name:<{width}}  {description}".rstrip())


def _list_policies() -> dict[str, str]:
    from simmodel.policies.backfilling import BACKFILLS
    from simmodel.scheduling.registry import policy_names

    kinds = " | ".join(kind for kind in BACKFILLS if kind != "none")
    more = {
        "portfolio(A, B, ...)": (
            "of these, with backfill=, objective=, ties=, interval=, hysteresis=, horizon=, estimates="
        ),
        "ORDER+BACKFILL": f"any order with {kinds}",
        "MODULE:NAME": "a custom policy",
    }
    placing = {name: f"on a machine: {line}" for name, line in policy_names("tasks").items()}
    return {**policy_names("jobs"), **more, **placing}


def _list_ready(kind: str) -> dict[str, str]:
    """Return the names of ready platforms or workloads with their descriptions."""
    import tomllib

    from simmodel.catalogue import bundled_file, bundled_names, load_platform

    described = {}
    for name in bundled_names(kind):
        path = bundled_file(kind, name)
        if path is not None and path.suffix == ".toml":
            description = tomllib.loads(path.read_text("utf-8")).get("description", "")
        else:  # what another format says of itself, its reader knows
            description = load_platform(name).description if kind == "platforms" else ""
        described[name] = str(description).partition(". ")[0].rstrip(".")
    return described


def _list_formats() -> dict[str, str]:
    from simmodel.catalogue import FORMATS, WORKFLOW_FORMATS

    described = {name: each.description for name, each in {**FORMATS, **WORKFLOW_FORMATS}.items()}
    return {**described, "hetsim": "platforms of HetSim, as XML"}


def _list_generators() -> dict[str, str]:
    """Return the generators with the keys of their parameters: of jobs for clusters, and of tasks for machines."""
    import inspect

    from simmodel.generators.settings import GENERATORS
    from simmodel.generators.task_kinds import TASK_KINDS

    def keys(function: Callable[..., object]) -> str:
        return ", ".join(key for key in inspect.signature(function).parameters if key not in ("rng", "seed", "part"))

    jobs = {name: f"jobs: {said} ({keys(signature)})" for name, (_, signature, said) in GENERATORS.items()}
    return {**jobs, **{name: f"tasks: {kind.description} ({keys(kind.make)})" for name, kind in TASK_KINDS.items()}}


def _list_brokers() -> dict[str, str]:
    """Return the names of the brokers that ``simmodel meta`` knows."""
    from simmodel.scheduling.registry import policy_names

    return {**policy_names("systems"), "MODULE:NAME": "a custom policy"}


_LISTS: dict[str, Callable[[], dict[str, str]]] = {
    "policies": _list_policies,
    "brokers": _list_brokers,
    "platforms": lambda: _list_ready("platforms"),
    "workloads": lambda: _list_ready("workloads"),
    "formats": _list_formats,
    "generators": _list_generators,
}
