"""``simmodel twin predict`` and ``explain``: when waiting jobs of a cluster start, and why one waits."""

from __future__ import annotations

import argparse
from typing import Any

from simmodel.extending import (
    PROGRESS,
    QUIET,
    READING,
    SEED,
    TRUST,
    WORKERS,
    answer,
    argument,
    command,
    document,
    files,
    group,
    picture,
    plot,
    process_pool,
    share,
    source,
    table,
    whole,
    write_and_say,
)
from simmodel_site.commands.operating import TWIN

__all__ = ["explain", "predict"]


@command(
    "twin predict",
    TWIN,
    argument("jobs JOB", "ids of waiting jobs (default: all)", nargs="*"),
    group(
        "prediction",
        argument("--predictor NAME", "of run times (default: predicted with --history, else request)"),
        argument("--history LOG", "jobs that have ended, from which the predictor learns", source),
        READING,
        argument("--quantiles Q", "(default: 0.1 0.5 0.9)", share, nargs="+", default=[0.1, 0.5, 0.9]),
        argument("--draws N", "futures to draw (default: 100)", whole, default=100),
        argument("--past FILE", "where predictions are kept and judged (default: CONFIG.predictions.jsonl)", source),
    ),
    SEED,
    WORKERS,
    TRUST,
    PROGRESS,
    files(table("one line a job: its predicted start, and quantiles (s)"), document("the same")),
    examples=(
        "simmodel twin predict twin.toml 4711",
        "simmodel twin predict twin.toml --history sacct.txt --table starts.csv",
    ),
)
def predict(options: argparse.Namespace) -> None:
    """Print when waiting jobs will start: as predicted, and quantiles over futures with drawn run times.

    Beside each stand the start that the scheduler foretells, if it does, and the share of earlier predictions, which
    looked as far ahead, that held: whose jobs started between the lowest and the highest quantile. The state is that of
    a full report of the source, of the audit log, or of events. Nothing is changed on the cluster.
    """
    from pathlib import Path

    import numpy as np

    from simmodel.extending import counted, duration, text_table
    from simmodel.futures import predict_starts
    from simmodel.scheduling import predictor as predictor_of
    from simmodel.work import Table
    from simmodel_site.twin.config import read_config
    from simmodel_site.twin.mirror.present_state import present
    from simmodel_site.twin.predictions import Foretold, PredictionLog, share_held

    config = read_config(options.config, trust=options.trust)
    mirror, report = present(config, trust=options.trust)
    book = PredictionLog(Path(options.past or f"{options.config}.predictions.jsonl"))
    chosen: Any = options.predictor or ("predicted" if options.history is not None else "request")
    if options.history is not None:
        chosen = _taught(predictor_of(chosen), options.history)
    with process_pool(options) as executor:
        found = predict_starts(
            mirror.snapshot(),
            [int(job) if job.isdecimal() else job for job in options.jobs] or None,
            quantiles=options.quantiles,
            draws=options.draws,
            predictor=chosen,
            executor=executor,
            seed=options.seed,
            progress=options.progress,
        )
    book.settle(mirror.start_of)
    settled = book.settled()
    told = {} if report is None else {(each.job, each.submit): each.foretold for each in report.jobs}
    quantiles = [name for name in found.names if name.startswith("q")]
    made = [
        Foretold(
            at=mirror.now,
            job=row["job"],
            submit=row["submit"],
            predicted=row["predicted"],
            low=min((row[name] for name in quantiles), default=row["predicted"]),
            high=max((row[name] for name in quantiles), default=row["predicted"]),
            scheduler=told.get((row["job"], row["submit"])),
        )
        for row in found.rows()
    ]
    marks = ["; ".join(mirror.unmodelled(each.job)) for each in made]
    more = {
        "scheduler": np.array([np.nan if each.scheduler is None else each.scheduler for each in made]),
        "held": [share_held([each for each in settled if each.ahead == one.ahead]) for one in made],
        "unmodelled": np.array(marks, dtype=object),
    }
    found = Table({**{name: found[name] for name in found.names}, **more})
    shown = [name for name in found.names[2:-2] if not np.isnan(found[name]).all()]
    rows = [["job", *shown, "held before", *(["not modelled"] if any(marks) else [])]]
    for row in found.rows():
        left = [duration(max(0.0, round(row[name] - mirror.now, 3))) for name in shown]
        rows.append([str(row["job"]), *left, row["held"] or "-", row["unmodelled"]][: len(rows[0])])
    head = f"{config.cluster} at {mirror.now:.10g} s: jobs start after (as predicted, on average, by each probability"
    head += ", and as the scheduler says)" if "scheduler" in shown else ")"
    said = [head, *text_table(rows), book.verdict()]
    if len(quantiles) > 1:
        book.add(made)
    if book.unreadable:
        said.append(f"{book.path}: {counted(book.unreadable, 'line')} that cannot be read, passed over")
    write_and_say(options, said, indent="", table=found.to_csv, json=answer(head, jobs=found.rows()))


def _taught(predictor: Any, log: str) -> Any:
    """Return a predictor that has learned from a log."""
    from simmodel.catalogue import load_workload
    from simmodel.extending import learn_from

    learn_from(predictor, load_workload(log))
    return predictor


@command(
    "twin explain",
    TWIN,
    argument("job JOB", "the id of a job that waits or is held"),
    argument("--policy NAME", "that of the scheduler (default: of the configuration)"),
    TRUST,
    group("display", QUIET),
    files(
        document("the explanation"),
        plot("what stands in the way, and who holds it", "why.png"),
    ),
    examples=("simmodel twin explain twin.toml 4711 --plot",),
)
def explain(options: argparse.Namespace) -> None:
    """Explain why a job waits in a cluster now: jobs ahead, holders of its resources, and the least change that helps.

    The state is that of a full report of the source, of the audit log, or of events. The policy of the configuration is
    asked on a copy, also about each change; the scheduler's own reason is shown beside it. Nothing is changed.
    """
    from simmodel_site.twin.config import read_config
    from simmodel_site.twin.mirror.present_state import explain_in_mirror, present

    config = read_config(options.config, trust=options.trust)
    mirror, report = present(config, trust=options.trust)
    found = explain_in_mirror(mirror, options.job, report, options.policy, dated=config.clock == "wall")
    said = [f"{config.cluster}, {config.policy if options.policy is None else options.policy}: {found.report()}"]
    write_and_say(options, said, indent="", json=found.to_json, plot=picture(found.plot))
