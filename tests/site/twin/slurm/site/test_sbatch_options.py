"""The options of sbatch: whatever may change a start is expressed, or named with its jobs."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from simmodel_site.twin.slurm.site.folder import read_folder
from simmodel_site.twin.slurm.site.sbatch import IDLE, OPTIONS, READ, SubmitLine, job_list
from tests.site.helpers.slurm_sacct import sacct_line, site_folder

# Of sbatch(1) 22.05: options that may change a start, each with a value, as users write them.
MAY = {
    "array": "0-9%2",
    "batch": "big",
    "bb": "capacity=1G",
    "bbf": "spec",
    "begin": "now+60",
    "clusters": "alps",
    "cluster-constraint": "big",
    "constraint": "a&b",
    "contiguous": None,
    "core-spec": "1",
    "cores-per-socket": "2",
    "cpus-per-gpu": "2",
    "deadline": "2030-01-01",
    "delay-boot": "5",
    "dependency": "singleton",
    "distribution": "cyclic",
    "exclude": "n[1-2]",
    "exclusive": "user",
    "extra-node-info": "1:2",
    "gpus-per-socket": "1",
    "gpus-per-task": "1",
    "gres": "gpu:a100:2",
    "gres-flags": "enforce-binding",
    "hint": "nomultithread",
    "hold": None,
    "licenses": "matlab|fluent",
    "mcs-label": "x",
    "mem": "0",
    "mem-per-gpu": "1G",
    "mincpus": "2",
    "network": "x",
    "no-requeue": None,
    "nodefile": "nodes.txt",
    "nodelist": "n1",
    "nodes": "2,4",
    "ntasks-per-core": "1",
    "ntasks-per-gpu": "1",
    "ntasks-per-socket": "1",
    "overcommit": None,
    "oversubscribe": None,
    "prefer": "big",
    "priority": "5",
    "reboot": None,
    "signal": "R:TERM@60",
    "sockets-per-node": "1",
    "spread-job": None,
    "switches": "1@60",
    "thread-spec": "1",
    "threads-per-core": "1",
    "time-min": "5",
    "tmp": "1G",
    "use-min-nodes": None,
}
HARMLESS = {
    "job-name": "run",
    "output": "out.txt",
    "error": "err.txt",
    "mail-type": "END",
    "chdir": "sub",
    "export": "ALL",
    "comment": "x",
    "wait": None,
    "requeue": None,
    "parsable": None,
    "wckey": "k",
    "nice": "5",
    "signal": "TERM@60",
    "account": "a",
    "kill-on-invalid-dep": "yes",
    "time": "10",
    "ntasks": "1",
    "mem-per-cpu": "100",
    "gres": "gpu:1",
}
SHORT = {"constraint": "C", "exclude": "x", "nodelist": "w", "hold": "H", "begin": "b", "job-name": "J", "nodes": "N"}


@st.composite
def written(draw: st.DrawFn, name: str, value: str | None) -> list[str]:
    """Return an option as words of a submit line, in one of the forms that sbatch takes."""
    letter = SHORT.get(name)
    if value is None:
        return [f"-{letter}" if letter and draw(st.booleans()) else f"--{name}"]
    long = [[f"--{name}={value}"]]
    if name not in ("exclusive", "nice"):  # whose value needs the sign
        long.append([f"--{name}", value])
    short = [[f"-{letter}{value}"], [f"-{letter}", value]] if letter else []
    return draw(st.sampled_from(long + short))


@st.composite
def submit_lines(draw: st.DrawFn) -> tuple[list[str], str]:
    """Return options that may change a start, and a submit line with them and others."""
    names = draw(st.lists(st.sampled_from(sorted(MAY)), max_size=3, unique=True))
    others = draw(st.lists(st.sampled_from(sorted(HARMLESS.keys() - set(names))), max_size=3, unique=True))
    words = [draw(written(name, MAY[name])) for name in names] + [
        draw(written(name, HARMLESS[name])) for name in others
    ]
    return names, " ".join(word for several in draw(st.permutations(words)) for word in several)


@given(st.lists(submit_lines(), min_size=1, max_size=5))
def test_every_option_that_may_change_a_start_is_named_with_its_jobs(jobs: list[tuple[list[str], str]]) -> None:
    """Of those that are expressed, the tests of the reading say how."""
    with TemporaryDirectory() as name:
        lines = [sacct_line(number, options) for number, (_, options) in enumerate(jobs, 1)]
        found = read_folder(site_folder(Path(name), lines))
    named = {
        (job, text.what.removeprefix("--").partition("=")[0].partition(" ")[0])
        for text in found.unsupported
        if (where := re.fullmatch("jobs? (.*)", text.where))
        for span in where[1].split(", ")
        for first, _, last in [span.partition("-")]
        for job in range(int(first), int(last or first) + 1)
    }
    asked = {(number, name) for number, (names, _) in enumerate(jobs, 1) for name in names}
    assert named == {(job, name) for job, name in asked if name not in EXPRESSED}


EXPRESSED = {"array", "begin", "constraint", "deadline", "exclude", "gres", "hold", "mem", "nodelist", "switches"}
EXPRESSED |= {"gpus-per-task", "mem-per-gpu", "ntasks-per-gpu"}
"""Options of ``MAY`` that jobs of simmodel express."""


def test_each_option_has_one_place() -> None:
    assert OPTIONS.keys() >= MAY.keys() | HARMLESS.keys()
    assert not IDLE & READ
    told = {"cpu-freq", "gpus", "gpus-per-node", "ntasks-per-node", "cpus-per-task", "partition", "qos", "reservation"}
    assert OPTIONS.keys() - IDLE - MAY.keys() - HARMLESS.keys() <= told


def test_an_unknown_option_is_named() -> None:
    """A later Slurm has others; ``--gp`` may be several."""
    line = SubmitLine.of("sbatch --tres-per-task=cpu=2 -Z --gp 2 --exclus run.sh")
    assert [name for name, _ in line.unread()] == [
        "--tres-per-task=cpu=2",
        "-Z",
        "--gp",
        "--exclusive (or an argument of the script)",
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sbatch run.sh -w n3", []),
        ("sbatch -J a run -w n3 run.sh", ["--nodelist=n3 (or an argument of the script)"]),
        ("sbatch --wrap sleep 5 -w n3", ["--nodelist"]),
        ("sbatch -N1 : -N2 run.sh", ["a job of several components (:)", "--nodes=2 (or an argument of the script)"]),
        ("srun -n 4 ./a.out", ["srun"]),
        ("/usr/bin/sbatch -QHn2 run.sh", ["--hold"]),
        ("-x n1", ["--exclude"]),
        ("sbatch -- -w", []),
        ("", []),
    ],
)
def test_lines_whose_words_may_mean_two_things(text: str, named: list[str]) -> None:
    """A submit line shows no quotes: a value with spaces may end the options too early."""
    assert [name for name, _ in SubmitLine.of(text).unread()] == named


def test_ids_of_jobs_that_follow_each_other_are_a_span() -> None:
    assert job_list([1, 2, 3, 7, "9_1", 10, 11]) == "1-3, 7, 9_1, 10-11"
