"""``simmodel meta``: run logs on several clusters under a broker."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simmodel.commands.outputs import document, files, log_name, page, picture, plot, table, write_and_say
from simmodel.commands.shared import (
    POLICY,
    READING,
    RULES,
    SET,
    WORKERS,
    changed_platform,
    chosen_policy,
    kind_arguments,
    kind_options,
    process_pool,
    split_names,
    with_changes,
)
from simmodel.commands.values import argument, at_least_one, command, seed, source
from simmodel.foundation.errors import InputError
from simmodel.platform.options import BrokerOptions

if TYPE_CHECKING:
    from simmodel.work.workload import Workload


@command(
    "meta",
    argument(
        "logs LOG",
        "a log for all clusters, or one per cluster: files, or names from 'simmodel list workloads'",
        source,
        nargs="+",
    ),
    READING,
    argument("--clusters A,B,...", "of each the number of processors, a platform or a file", source, required=True),
    SET,
    argument(
        "--broker NAME[,NAME...]",
        "names from 'simmodel list brokers'; several are compared (default: sgs-t)",
        default="sgs-t",
    ),
    argument(
        "--slowdowns [ORIGIN:]X,Y,...",
        "factor of the run times on each cluster (default: 1); with the name of a cluster and a colon, of the jobs "
        "of its log; may be repeated",
        action="append",
        default=[],
    ),
    kind_arguments(BrokerOptions),
    argument("--ties {first,least-loaded,home,random}", "among equal clusters (default: first)"),
    argument("--repeat N", "runs of each random broker (default: 1)", at_least_one, default=1),
    argument("--edges N", "leave the first and last N jobs out of means (default: 0)", seed, default=0),
    argument("--align", "shift each log so that its first job is submitted at 0"),
    WORKERS,
    POLICY,
    RULES,
    files(
        document("metrics, tables and the scenarios, which repeat the runs"),
        table("one line per job, under the last broker", "schedule"),
        plot("the comparison on one page", "brokers.png"),
        page("the runs beside each other,"),
    ),
    examples=(
        "simmodel meta lublin-128-week --clusters 128,64 --slowdowns 1,1.3 --broker sgs-t,least-loaded",
        "simmodel meta lublin-128-week lublin-256 --clusters polaris,theta --slowdowns polaris:1,4 "
        "--broker siloed,random --repeat 3 --plot brokers.png",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Replay logs on several clusters under one or more brokers; print mean waits by size and requested time."""
    from simmodel.experiments.broker_comparison import compare_brokers
    from simmodel.scheduling.registry import labelled
    from simmodel.systems.kinds import kind_named

    policy, _ = chosen_policy(options)
    clusters = [_cluster(text) for text in _parts(options.clusters, "--clusters")]
    brokers = split_names(options.broker)
    given = kind_options(options, kind_named("broker"))
    if options.slowdowns:
        given["slowdowns"] = _slowdowns(options.slowdowns, clusters, len(options.logs))
    logs = [_log(name, options.align) for name in options.logs]
    with process_pool(options, most=len(brokers) * options.repeat) as executor:
        found = compare_brokers(
            changed_platform(options, clusters),
            logs[0] if len(logs) == 1 else logs,
            {name: with_ties(name, options.ties) for name in labelled(brokers, "broker", "brokers")},
            repeat=options.repeat,
            edges=options.edges,
            seed=options.seed,
            executor=executor,
            results=True if any((options.json, options.schedule, options.plot, options.html)) else None,
            progress=options.progress,
            until=options.until,
            policies=policy,
            **given,
        )
    last = found[list(found.results)[-1]]
    title = f"{', '.join(map(log_name, options.logs))} on {len(clusters)} clusters under {', '.join(found.results)}"
    title = with_changes(options, title)
    said = [title, found.summary(), *(f"  {line}" for line in last.report.lines())]
    write_and_say(
        options,
        said,
        json=found.to_json,
        schedule=lambda path: last.schedule_csv(path),
        plot=picture(found.plot),
        html=lambda path: found.to_html(path, title=title),
    )


def with_ties(name: str, ties: str | None) -> str:
    """Return the name of a broker with a rule for ties, unless it has one or does not rank clusters.

    >>> with_ties("sgs-t", "home"), with_ties("least-loaded(jobs)", "home"), with_ties("random", "home")
    ('sgs-t(ties=home)', 'least-loaded(jobs, ties=home)', 'random')
    """
    from simmodel.policies.mapping import Lowest
    from simmodel.scheduling.registry import policy
    from simmodel.systems.kinds import kind_named

    if ties is None or "ties=" in name or not isinstance(policy(name, kind_named("broker").asks), Lowest):
        return name
    return f"{name.removesuffix(')')}, ties={ties})" if name.endswith(")") else f"{name}(ties={ties})"


def _parts(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{option}: must be a list separated by commas, got {text!r}")
    return parts


def _cluster(text: str) -> Any:
    return int(text) if text.isdecimal() else text


def _slowdowns(given: list[str], clusters: list[Any], logs: int) -> list[float] | dict[tuple[str | None, str], float]:
    """Return the factors on the clusters: one list for all jobs, or by home and cluster."""
    if len(given) == 1 and ":" not in given[0]:
        return [_factor(text) for text in _parts(given[0], "--slowdowns")]
    from simmodel.runs.scenario import platform_of

    spec: Any = platform_of(clusters)
    names = list(spec.places)
    homes = names[:logs] if logs > 1 else []
    found: dict[tuple[str | None, str], float] = {}
    for text in given:
        origin, colon, last = text.rpartition(":")
        home = origin.strip() if colon else None
        of = "--slowdowns" if home is None else f"--slowdowns {home}"
        if home is not None and home not in homes:
            accepted = f"must be one of {', '.join(homes)}" if homes else "one log for all clusters has no origins"
            raise InputError(f"--slowdowns: origin {home!r}: {accepted}")
        if (home, names[0]) in found:
            raise InputError(f"{of}: must be given once, got {text!r} too")
        factors = [_factor(part) for part in _parts(last, of)]
        if len(factors) != len(names):
            raise InputError(f"{of}: must have {len(names)} numbers, one per cluster, got {len(factors)}")
        found |= {(home, name): factor for name, factor in zip(names, factors, strict=True)}
    return found


def _factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--slowdowns: must be numbers > 0, got {text!r}") from None


def _log(name: str, align: bool) -> Workload | str:
    if not align:
        return name
    from simmodel.catalogue import load_workload
    from simmodel.work.transformations import shift

    log = load_workload(name)
    return shift(log, -float(log["submit"].min())) if len(log) else log
