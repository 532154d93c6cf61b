"""``simmodel compare`` and ``portfolio``: replay a log under several policies, each alone or one chosen at a time."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.outputs import (
    database,
    document,
    files,
    log_name,
    page,
    picture,
    plot,
    table,
    write_and_say,
)
from simmodel.commands.shared import (
    HORIZON,
    LOG,
    MACHINE,
    POLICIES,
    READING,
    RULES,
    SAMPLE,
    TOO_LONG,
    WORKERS,
    backfill,
    changed_platform,
    kept_runs,
    kept_study,
    process_pool,
    run_options,
    see_working_folder,
    split_names,
    with_changes,
)
from simmodel.commands.values import argument, command, group, number, output, seconds, source
from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from simmodel.experiments.comparison import Comparison
    from simmodel.experiments.portfolio_comparison import PortfolioComparison
    from simmodel.runs.scenario import GivenPlatform

__all__ = ["compare", "portfolio"]


@command(
    "compare",
    argument(
        "log LOG",
        "files, names from 'simmodel list workloads', or generators such as lublin:jobs=600; "
        "differences over several are paired by log",
        source,
        nargs="+",
    ),
    READING,
    argument("--policies A,B,C", f"{POLICIES} (default: easy)"),
    argument(
        "--case NAME:CHANGES",
        "a machine beside the one as it is, with changes as of --set separated by commas: --case 'larger: nodes=+20'; "
        "may be repeated",
        dest="cases",
        action="append",
        default=[],
    ),
    SAMPLE,
    MACHINE,
    TOO_LONG,
    RULES,
    WORKERS,
    kept_study("the same command goes on"),
    files(
        argument("--table OUT.csv", "all metrics, one line per case", output),
        table("all differences to the baseline, one line per case and metric", "csv"),
        document("the sample, metrics and differences"),
        plot("the metrics as bars, or means with intervals", "comparison.png"),
        page("the runs beside each other,"),
    ),
    examples=(
        "simmodel compare lublin-128-week --policies fcfs,easy,sjf+easy --plot",
        "simmodel compare polaris-like --case 'a tenth more: nodes=x1.1' --resample weeks --workers 2",
    ),
)
def compare(options: argparse.Namespace) -> None:
    """Replay logs under several policies and print their metrics, what they differ by, and how sure that is."""
    from simmodel.experiments.comparison import compare as compared

    policies = split_names(options.policies or "easy")
    platform, given = run_options(options)
    logs = {log_name(log): log for log in options.log}
    if len(logs) < len(options.log):
        raise InputError(f"LOG: must name each log once, got {' '.join(options.log)}")
    sample = {name: value for name in _SAMPLE if (value := getattr(options, name)) is not None}
    whole = None if options.html is None else True
    study = None if options.study is None else Path(options.study)
    with process_pool(options) as executor, kept_runs(study, "the same command goes on"):
        found = compared(
            _machines(options, platform),
            logs if len(logs) > 1 else options.log[0],
            policies,
            study=study,
            force=options.force,
            executor=executor,
            results=whole,
            **sample,
            **given,
        )
    said = [with_changes(options, _head(found, options.log)), "", found.summary()]
    said += ["", *answer] if (answer := found.answer()) else []
    said += found.results[0].report.lines() if found.results else []
    write_and_say(
        options,
        said,
        indent="",
        table=found.table.to_csv,
        csv=found.to_csv,
        json=found.to_json,
        plot=picture(found.plot),
        html=lambda path: found.to_html(path, title=", ".join(logs)),
    )


def _machines(options: argparse.Namespace, platform: GivenPlatform) -> Any:
    """Return the platform, or that and those of the cases, by name."""
    if not options.cases:
        return platform
    from simmodel.runs.changes import case_of

    cases = [case_of(text) for text in options.cases]
    if len({name for name, _ in cases} | {_AS_IT_IS}) <= len(cases):
        raise InputError(f"--case: must have a name of its own, other than {_AS_IT_IS!r}")
    return {_AS_IT_IS: platform} | {name: changed_platform(options, platform, changes) for name, changes in cases}


_AS_IT_IS = "as it is"
_SAMPLE = ("baseline", "resample", "runs", "seeds", "stop", "budget", "level")


def _head(found: Comparison, logs: list[str]) -> str:
    """Return the title: the log, its jobs and the machine, or the numbers of runs."""
    if not found.results or len(logs) > 1:
        return repr(found).strip("<>")
    first = found.results[0]
    return f"{log_name(logs[0])}: {first.metrics()['jobs']:,} jobs on {first.processors:,} processors"


@command(
    "portfolio",
    LOG,
    group(
        "portfolio",
        argument("--policies A,B,C", "the candidates (default: wfp,fcfs,sjf)", default="wfp,fcfs,sjf"),
        backfill("backfilling of candidates that are orders (default: easy)", "easy"),
        argument(
            "--objective TERMS",
            "the score to minimise, such as 0.5*wait_max+0.5*slowdown_mean, raw:wait_mean or MODULE:FUNCTION "
            "(default: the mean of wait_max, slowdown_max, wait_mean and slowdown_mean, each scaled to 0 for the best "
            "candidate and 1 for the worst)",
            default="schedtwin",
        ),
        argument("--ties A,B,C", "preference among equal scores (default: as --policies)"),
        argument("--interval TIME", "keep each choice this long (default: 0)", seconds),
        argument(
            "--hysteresis SHARE",
            "change only to a policy that is better by this share (default: 0)",
            number("a number >= 0", lambda value: value >= 0),
            default=0.0,
        ),
        HORIZON,
    ),
    MACHINE,
    RULES,
    WORKERS,
    files(
        table("one line per job, with the policy that started it", "schedule"),
        argument("--choices OUT.csv", "each score, and the policy chosen at each decision", output),
        document("all measures and the scenario, which repeats the run"),
        database(),
        plot("scores, starts and a radar chart", "portfolio.png"),
        page("the run of the portfolio"),
    ),
    examples=(
        "simmodel portfolio probe-4 --policies fcfs,sjf",
        "simmodel portfolio schedtwin --policies fcfs,wfp,sjf --interval 10min --plot portfolio.png",
    ),
)
def portfolio(options: argparse.Namespace) -> None:
    """Replay a log under a portfolio of policies and under each of them alone.

    At each decision the portfolio simulates every candidate, with requested instead of actual run times, and follows
    the one whose simulated future is best for the waiting jobs.
    """
    from simmodel.experiments.portfolio_comparison import compare_portfolio

    platform, given = run_options(options)
    written = (options.schedule, options.choices, options.json, options.db, options.plot, options.html)
    whole = True if any(written) else None
    with process_pool(options, most=len(split_names(options.policies)) + 1) as executor:
        found = compare_portfolio(platform, options.log, _text(options), executor=executor, results=whole, **given)
    result = found.portfolio
    head = f"{log_name(options.log)}: {result.metrics()['jobs']:,} jobs on {result.processors:,} processors"
    time, choices = result.decisions, found.choices
    spent = (
        f"{choices:,} choices; a decision took {1e3 * time['mean']:.3g} ms on average, {1e3 * time['max']:.3g} at most"
    )
    write_and_say(
        options,
        [head, f"objective: {found.objective}", "", found.summary(), "", spent, *result.report.lines()],
        schedule=lambda path: result.schedule_csv(path),
        choices=lambda path: result.choices.to_csv(path),
        json=lambda path: _write_json(found, path),
        db=lambda path: result.to_sqlite(path, force=options.force),
        plot=picture(found.plot),
        html=lambda path: result.to_html(path),
    )


def _text(options: argparse.Namespace) -> str:
    """Return the portfolio as a text, which the scenario keeps."""
    from simmodel.scheduling.objectives import objective

    see_working_folder(options.objective)
    goal = objective(options.objective)
    policies = split_names(options.policies)
    if not policies:
        raise InputError(f"--policies: must name at least one policy, got {options.policies!r}")
    said = [*policies, f"backfill={options.backfill}"]
    said.append(f"objective={options.objective.strip() if goal.function is not None else goal}")
    if options.ties is not None:
        said.append(f"ties={'>'.join(split_names(options.ties))}")
    said += [f"{name}={value!r}" for name in ("interval", "hysteresis", "horizon") if (value := getattr(options, name))]
    return f"portfolio({', '.join(said)})"


def _write_json(found: PortfolioComparison, path: Path) -> None:
    from simmodel.foundation.writing import write_text
    from simmodel.results.stores import plain

    document = {**json.loads(found.portfolio.to_json()), "portfolio": plain(found.document())}
    write_text(path, json.dumps(document, indent=2) + "\n")
