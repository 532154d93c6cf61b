"""Schedule as a site's Slurm does: read its files, simulate its schedule, and change its settings."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from simmodel import InputError
from simmodel.extending import (
    PROGRESS,
    QUIET,
    READING,
    TOO_LONG,
    WORKERS,
    answer,
    argument,
    arguments,
    command,
    document,
    files,
    group,
    output,
    process_pool,
    seconds,
    source,
    table,
    whole,
    write_and_say,
)

__all__ = ["ACTIONS", "EXAMPLES", "read", "replayed"]

EXAMPLES = ("simmodel slurm read site", "simmodel slurm replay site --set bf_interval=60")
ACTIONS = {
    "read": ("read a site's Slurm as platform, policy and workload", __name__),
    "replay": ("compare the simulated schedule with the recorded one, or change settings", __name__),
}

_SITE = arguments(
    argument(
        "folder FOLDER",
        "a folder, or several files: slurm.conf, topology.conf, gres.conf, the output of 'scontrol show ...', of "
        "'sacctmgr dump', of 'sacctmgr --parsable2 show qos' and of 'sacct --parsable2', or the file of "
        "jobcomp/filetxt",
        source,
        nargs="+",
    ),
    argument(
        "--boot TIME",
        "how long nodes boot that power saving switches off: 240s, 4min (default: as in slurmctld.log, else "
        "ResumeTimeout, an upper bound)",
        seconds,
    ),
    READING,
)
_DISPLAY = group("display", QUIET)


@command(
    "slurm read",
    _SITE,
    _DISPLAY,
    files(
        argument("--platform OUT.toml", "the platform, with the policy and what is not expressed as comments", output),
        table("the jobs: submissions, run times, limits and requests", "workload"),
        document("what the files say, and what is not expressed"),
    ),
    examples=("simmodel slurm read site", "simmodel slurm read /etc/slurm sacct.txt --platform site.toml"),
)
def read(options: argparse.Namespace) -> None:
    """Read what a site's Slurm is, and print the platform, the policy and the workload that it makes.

    The list of what they do not express names each setting, and each job with an option of sbatch that is not modelled.
    """
    from simmodel.extending import printable
    from simmodel_site.twin.slurm.site.folder import read_folder

    found = read_folder(options.folder, timezone=options.timezone, boot=options.boot)
    said = [printable(line) for line in found.report().splitlines()]
    write_and_say(
        options,
        said,
        indent="",
        platform=found.platform_to_toml,
        workload=found.workload_to_csv,
        json=answer(said[0], report=said),
    )


@command(
    "slurm replay",
    _SITE,
    argument(
        "--set NAME=VALUE",
        "a setting to change, of SchedulerParameters or of slurm.conf, or a line about nodes or partitions, as in "
        "slurm.conf; may be repeated: what the change would do to the waits is printed instead",
        dest="changes",
        action="append",
        default=[],
    ),
    group(
        "sample, with --set",
        argument("--phases N", "in how many phases of Slurm's loops both are simulated (default: 10)", whole),
        argument("--window TIME", "the last of the log alone, or the first: 2w, first:2w; from the recorded state"),
        argument("--sample N", "weeks drawn at random, each from the recorded state at its begin", whole),
        argument("--resample {users}", "intervals from logs like this one: its users drawn anew by whole weeks"),
        argument("--runs N", "with --resample, how many (default: 20)", whole),
        argument("--seed SEED", "of --sample and --resample (default: 0)", whole),
    ),
    TOO_LONG,
    WORKERS,
    PROGRESS,
    files(
        table("one line a job: recorded and simulated start, or the effects of --set"),
        document("the same, with --set also the sample and both policies"),
    ),
    examples=(
        "simmodel slurm replay site",
        "simmodel slurm replay site --set bf_interval=60 --set bf_window=2880",
        'simmodel slurm replay site --set "PartitionName=batch MaxTime=12:00:00" --too-long cut',
        'simmodel slurm replay site --set "NodeName=n[41-60] CPUs=32"',
    ),
)
def replayed(options: argparse.Namespace) -> None:
    """Run the jobs of a site under policy slurm, and print how many starts differ by more than a backfill cycle.

    Of the first that differs it is said why: whether the policy decides otherwise in the state that was recorded, or
    starts before it have led to another state.
    """
    from simmodel.extending import printable
    from simmodel_site.twin.slurm.site.folder import read_folder
    from simmodel_site.twin.slurm.site.replayed import change, replay

    given = {name: value for name in _OF_CHANGES if (value := getattr(options, name)) is not None}
    alone = [name for name in given if name != "seed"]
    if alone and not options.changes:
        raise InputError("needs --set", place=f"--{alone[0].replace('_', '-')}")
    folder = read_folder(options.folder, timezone=options.timezone, boot=options.boot)
    written: Callable[[Path], str] | None = None
    if options.changes:
        with process_pool(options) as executor:
            changed = change(folder, options.changes, executor=executor, progress=options.progress, **given)
        report, rows, written = changed.report(), changed.table, changed.to_json
    else:
        found = replay(folder, progress=options.progress)
        report, rows = found.report(), found.jobs
    said = [printable(line) for line in [*report.splitlines(), *folder.not_expressed()]]
    write_and_say(options, said, indent="", table=rows.to_csv, json=written or answer(said[0], rows=rows.rows()))


_OF_CHANGES = ("phases", "window", "sample", "resample", "runs", "seed", "too_long")
