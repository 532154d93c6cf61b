"""``simmodel list``: list bundled platforms and workloads, policies, rules, formats and generators."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from simmodel.commands.outputs import QUIET, document, files, table, write_and_say
from simmodel.commands.values import argument, command, group, one_of

COLUMNS = 100
"""Lines are at most this long."""


Rows = list[tuple[str, ...]]
"""Lines as tuples: a name, possibly a kind, and a description."""


def _list_policies() -> Rows:
    from simmodel.policies.backfilling import BACKFILLS
    from simmodel.scheduling.registry import policy_names

    kinds = " | ".join(kind for kind in BACKFILLS if kind != "none")
    parameters = "backfill=, objective=, ties=, interval=, hysteresis=, horizon=, estimates="
    return [
        *((name, "jobs", text) for name, text in policy_names("jobs").items()),
        ("portfolio(A, B, ...)", "jobs", f"the same of these policies, with {parameters}"),
        ("ORDER+BACKFILL", "jobs", f"any order with {kinds}"),
        *((name, "tasks", text) for name, text in policy_names("tasks").items()),
        ("MODULE:NAME", "any", "a custom policy"),
    ]


def _list_brokers() -> Rows:
    from simmodel.scheduling.registry import policy_names

    planners = [(name, f"{text} (grids)") for name, text in policy_names("plans").items()]
    return [*policy_names("systems").items(), *planners, ("MODULE:NAME", "a custom policy")]


def _list_placements() -> Rows:
    from simmodel.resources.pools.placements import described_placements

    return list(described_placements().items())


def _list_evictions() -> Rows:
    """Return the eviction rules of storages and memory pools, each with the first line of its description."""
    from simmodel.platform.models import EVICTIONS

    return _documented(EVICTIONS)


def _list_predictors() -> Rows:
    """Return the predictors of run times, each with the first line of its description."""
    from simmodel.platform.models import PREDICTORS

    return _documented(PREDICTORS)


def _list_resources() -> Rows:
    """Return the models of resources, each with the kind of resource and the first line of its description."""
    from simmodel.platform.models import MODELS
    from simmodel.resources.models import kind_of_model

    rows = ((name, kind_of_model(MODELS[name]) or "", text) for name, text in _documented(MODELS))
    return [*sorted(rows, key=lambda row: row[1]), ("MODULE:CLASS", "any", "a custom model")]


def _documented(entries: Mapping[str, object]) -> Rows:
    return [(name, ((each.__doc__ or "").strip() or " ").splitlines()[0].rstrip(".")) for name, each in entries.items()]


def _list_platforms() -> Rows:
    """Return the bundled platforms, each with its kind and the beginning of its description."""
    from simmodel.catalogue import load_platform
    from simmodel.catalogue.platforms import GROUP
    from simmodel.foundation.packages import offered

    rows: Rows = []
    for name, content in _bundled("platforms"):
        if not content:  # HetSim's XML
            kind, text = "machine", load_platform(name).description
        else:
            kind, text = content["kind"], content.get("description", "")
        sentence = _first_sentence(text)
        rows.append((name, kind, sentence if len(sentence) <= 72 else sentence.partition(":")[0]))  # of a line
    return rows + [(name, "", f"from {source}") for name, source in offered(GROUP).items()]


def _list_workloads() -> Rows:
    """Return the bundled workloads, of jobs for clusters or of tasks for machines."""
    from simmodel.catalogue.tasks import task_names

    tasks = task_names()
    return [
        (name, "tasks" if name in tasks else "jobs", _first_sentence(content.get("description", "")))
        for name, content in _bundled("workloads")
    ]


def _list_experiments() -> Rows:
    return [(name, _first_sentence(content.get("description", ""))) for name, content in _bundled("experiments")]


def _bundled(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names of bundled files, each with its document (empty if it is not TOML)."""
    import tomllib

    from simmodel.catalogue import bundled_names
    from simmodel.catalogue.bundled import bundled_file

    for name in bundled_names(folder):
        path = bundled_file(folder, name)
        assert path is not None
        yield name, tomllib.loads(path.read_text("utf-8")) if path.suffix == ".toml" else {}


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def _list_formats() -> Rows:
    from simmodel.catalogue.formats import FORMATS, WORKFLOW_FORMATS

    described = [(name, each.description) for name, each in {**FORMATS, **WORKFLOW_FORMATS}.items()]
    return [*described, ("hetsim", "platforms of HetSim, as XML"), ("simgrid", "platforms of SimGrid, as XML")]


def _list_generators() -> Rows:
    """Return the generators with their parameters: of jobs for clusters, and of tasks for machines."""
    import inspect

    from simmodel.generators.settings import GENERATORS
    from simmodel.generators.task_kinds import TASK_KINDS

    def keys(function: Callable[..., object]) -> str:
        return ", ".join(key for key in inspect.signature(function).parameters if key not in ("rng", "seed", "part"))

    return [
        *((name, "jobs", f"{text} ({keys(make)})") for name, (make, text) in GENERATORS.items()),
        *((name, "tasks", f"{kind.description} ({keys(kind.make)})") for name, kind in TASK_KINDS.items()),
    ]


_LISTS: dict[str, Callable[[], Rows]] = {
    "policies": _list_policies,
    "brokers": _list_brokers,
    "placements": _list_placements,
    "evictions": _list_evictions,
    "predictors": _list_predictors,
    "resources": _list_resources,
    "platforms": _list_platforms,
    "workloads": _list_workloads,
    "experiments": _list_experiments,
    "formats": _list_formats,
    "generators": _list_generators,
}


@command(
    "list",
    argument("kind KIND", f"{', '.join(_LISTS)}; default: these names", one_of(_LISTS, "kind"), nargs="?"),
    group("display", QUIET),
    files(document("the names, kinds and descriptions"), table("one line a name", "csv")),
    examples=("simmodel list policies", "simmodel list platforms"),
)
def run(options: argparse.Namespace) -> None:
    """List policies, brokers, placements, eviction rules, models of resources, platforms, workloads, and so on.

    Each has a description. Policies, workloads and generators are for jobs on clusters or for tasks on machines.
    """
    if options.kind is None:
        rows: Rows = [(kind, f"simmodel list {kind}") for kind in _LISTS]
        said = [text for _, text in rows]
    else:
        rows = _LISTS[options.kind]()
        from simmodel.foundation.display import text_table

        said = text_table(rows, left=len(rows[0]), most=COLUMNS)
    heads = ("name", "kind", "description") if len(rows[0]) > 2 else ("name", "description")
    columns = dict(zip(heads, zip(*rows, strict=True), strict=True))
    title = options.kind or "lists"
    write_and_say(options, said, "", json=partial(_write_json, title, columns), csv=partial(_write_csv, columns))


def names_of(kind: str) -> list[str]:
    """Return the names in a list: those of customs and of patterns, which no one types, are left out.

    >>> "easy" in names_of("policies"), "MODULE:NAME" in names_of("policies")
    (True, False)
    """
    return [name for name, *_ in _LISTS[kind]() if name == name.lower() and "(" not in name]


def _write_json(title: str, columns: Mapping[str, tuple[str, ...]], path: Path) -> None:
    from simmodel.results.stores import json_text

    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    json_text({title: rows}, path)


def _write_csv(columns: Mapping[str, tuple[str, ...]], path: Path) -> None:
    from simmodel.work.table import Table

    Table(columns).to_csv(path)
