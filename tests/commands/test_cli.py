"""The command line: its output files, and one sentence for each invalid input."""

import csv
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from simmodel.cli import main
from simmodel.formats.swf import read_swf
from simmodel.foundation.entries import Entries
from simmodel.platform.options import Options
from simmodel.resources.pools.counts import CountPool
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.systems import kinds
from simmodel.systems.jobs import JobSystem
from tests.helpers.data_files import data_file

LINE = "{} {} -1 {} {} -1 -1 {} {} -1 1 1 -1 -1 -1 -1 -1 -1"
PROBE = [(0, 1000, 5), (900, 500, 5), (950, 100, 7), (960, 400, 2)]


def swf(path: Path, jobs: list[tuple[int, int, int]], processors: int | None = 12) -> Path:
    """Write jobs (submit, run = requested, processors) as a log."""
    lines = [] if processors is None else [f"; MaxProcs: {processors}"]
    lines += [LINE.format(i, submit, run, n, n, run) for i, (submit, run, n) in enumerate(jobs, 1)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def schedule(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------- batch


def test_the_four_job_probe_keeps_the_promise(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swf(folder / "probe.swf", PROBE)
    assert main(["batch", "probe.swf", "--policy", "easy", "--schedule", "out.csv"]) == 0
    rows = schedule(folder / "out.csv")
    assert list(rows[0])[:6] == ["job", "submit", "start", "end", "processors", "status"]
    assert [row["start"] for row in rows] == ["0", "900", "1000", "1100"]
    assert {row["status"] for row in rows} == {"completed"}
    assert "probe under easy on 12 processors" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        ([], [0, 900, 1000, 1100]),
        (["--policy", "fcfs"], [0, 900, 1000, 1100]),
        (["--order", "fcfs", "--backfill", "easy"], [0, 900, 1000, 1100]),
        (["--backfill", "conservative"], [0, 900, 1000, 1100]),
        (["--order", "sjf", "--backfill", "conservative-keep"], [0, 900, 1000, 1100]),
        (["--backfill-order", "sjf"], [0, 900, 1000, 1100]),
        (["--order", "smallest", "--backfill", "none"], [0, 900, 1360, 960]),
        (["--decide-on", "event"], [0, 900, 1000, 1100]),
        (["--decide-on", "event", "--event-order", "ends-first", "--estimates", "cqsim"], [0, 900, 1000, 1100]),
        (["--policy", "sjf+easy", "--overrun", "continue", "--estimates", "exact"], [0, 900, 1000, 1100]),
    ],
)
def test_every_rule_can_be_chosen(folder: Path, arguments: list[str], starts: list[int]) -> None:
    swf(folder / "probe.swf", PROBE)
    assert main(["batch", "probe.swf", *arguments, "--schedule", "out.csv"]) == 0
    assert [int(row["start"]) for row in schedule(folder / "out.csv")] == starts


def test_processors_replace_those_of_the_header(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swf(folder / "probe.swf", PROBE)
    assert main(["batch", "probe.swf", "--processors", "6", "--schedule", "out.csv"]) == 0
    assert [row["status"] for row in schedule(folder / "out.csv")] == ["completed"] * 2 + ["rejected", "completed"]
    assert "rejected 1 (" in capsys.readouterr().out


@pytest.mark.parametrize("platform", ["kth-sp2", "own.toml"])
def test_a_platform_is_a_name_or_a_file(folder: Path, capsys: pytest.CaptureFixture[str], platform: str) -> None:
    (folder / "own.toml").write_text('kind = "cluster"\n[[partitions]]\nnodes = [{ count = 25, cores = 4 }]\n')
    assert main(["batch", "probe-4", "--platform", platform]) == 0
    assert "probe-4 under easy on 100 processors" in capsys.readouterr().out


def test_a_bar_shows_progress_beside_the_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "lublin-128-week"]) == 0
    alone = capsys.readouterr()
    assert main(["batch", "lublin-128-week", "--progress"]) == 0
    beside = capsys.readouterr()
    assert alone.err == ""
    assert "600/600" in beside.err
    assert alone.out.splitlines()[:-1] == beside.out.splitlines()[:-1]  # but for the time that decisions took


def test_an_end_before_the_first_submission_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swf(folder / "late.swf", [(submit + 599_850, run, n) for submit, run, n in PROBE])
    assert main(["batch", "late.swf", "--until", "2d"]) == 0
    assert "no job is submitted before 599850 s: --until and --at are instants of the log" in capsys.readouterr().out
    assert main(["batch", "late.swf", "--until", "8d"]) == 0
    assert "no job is submitted" not in capsys.readouterr().out


def test_until_stops_early(folder: Path) -> None:
    swf(folder / "probe.swf", PROBE)
    assert main(["batch", "probe.swf", "--until", "955", "--schedule", "out.csv"]) == 0
    rows = schedule(folder / "out.csv")
    assert [row["status"] for row in rows][:3] == ["running", "running", "waiting"]
    assert rows[2]["start"] == rows[2]["end"] == ""


def test_every_file_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"schedule": "s.csv", "json": "r.json", "db": "r.sqlite", "trace": "t.json", "plot": "p.png"}
    arguments = [word for kind, name in names.items() for word in (f"--{kind}", name)]
    assert main(["batch", "lublin-128-week", "--events", *arguments]) == 0
    said = capsys.readouterr().out
    assert all(f"{kind} written to {name}" in said for kind, name in names.items())

    document = json.loads((folder / "r.json").read_text())
    assert document["metrics"]["jobs"] == len(schedule(folder / "s.csv")) == 600
    assert document["scenario"]["policy"] == "easy"
    assert json.loads((folder / "t.json").read_text())["traceEvents"]
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    with sqlite3.connect(folder / "r.sqlite") as connection:
        count, mean = connection.execute("SELECT count(*), avg(wait) FROM jobs").fetchone()
        events = connection.execute("SELECT count(*) FROM events WHERE event = 'started'").fetchone()[0]
    connection.close()
    assert (count, events) == (600, 600)
    assert mean == pytest.approx(document["metrics"]["wait_mean"])


def test_a_stored_run_can_be_repeated(folder: Path) -> None:
    from simmodel import load_scenario

    assert main(["batch", "lublin-128-week", "--policy", "wfp+easy", "--json", "r.json", "--schedule", "s.csv"]) == 0
    again = load_scenario("r.json").run()
    assert again.jobs["start"].tolist() == [float(row["start"]) for row in schedule(folder / "s.csv")]


def test_a_policy_of_ones_own_is_named_by_its_module(folder: Path) -> None:
    (folder / "own_policy_for_cli.py").write_text(
        "from simmodel import Start\n\n\n"
        "def smallest(view):\n"
        "    place = view.places[0]\n"
        "    for job in sorted(view.waiting, key=lambda job: job.processors):\n"
        "        if place.fits(job):\n"
        "            yield Start(job, place)\n"
    )
    swf(folder / "probe.swf", PROBE)
    assert main(["batch", "probe.swf", "--policy", "own_policy_for_cli:smallest", "--schedule", "s.csv"]) == 0
    assert [int(row["start"]) for row in schedule(folder / "s.csv")] == [0, 900, 1360, 960]


def test_wrong_jobs_of_a_log_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [(5, 10, 4), (0, 10, 99), (0, 10, 0), (0, -1, 4), (7, 0, 4)]
    swf(folder / "dirty.swf", jobs)
    assert main(["batch", "dirty.swf", "--schedule", "s.csv"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"rejected 3 \(.*no processors 1.*\)", said)
    assert "repaired" in said
    assert [row["status"] for row in schedule(folder / "s.csv")] == ["completed", *["rejected"] * 3, "completed"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("log", "jobs", "said"),
    [
        ("swf/hpc2n-first3170.swf.gz", 3_170, ["rejected 25 (run time missing 25)", "skipped 524201"]),
        ("swf/LANL-CM5-1994-4.1-cln.swf.gz", 122_060, ["rejected 3 (no processors 3)", "repaired 22613"]),
    ],
)
def test_real_logs_with_wrong_jobs_finish(
    folder: Path, capsys: pytest.CaptureFixture[str], log: str, jobs: int, said: list[str]
) -> None:
    assert main(["batch", str(data_file(log)), "--json", "r.json"]) == 0
    out = capsys.readouterr().out
    assert all(sentence in out for sentence in said), out
    assert json.loads((folder / "r.json").read_text())["metrics"]["jobs"] == jobs


# ---------------------------------------------------------------------- wrong input

BAD_LINE = "; MaxProcs: 4\n" + LINE.format(1, 0, 10, 1, 1, 10) + "\n" + LINE.format(2, 0, "ten", 1, 1, 10) + "\n"
FILES = {
    "prose.swf": "It was a dark and stormy night.\n",
    "prose.txt": "It was a dark and stormy night.\n",
    "empty.swf": "",
    "empty.txt": "",
    "only-comments.swf": "; MaxProcs: 4\n",
    "bad-line.swf": BAD_LINE,
    "short-line.swf": LINE.format(1, 0, 10, 1, 1, 10) + "\n2 0 -1 10\n" + LINE.format(3, 0, 10, 1, 1, 10) + "\n",
    "no-size.swf": LINE.format(1, 0, 10, 1, 1, 10) + "\n",
    "bad.toml": 'generator = "lublin"\n[parameters]\njob = 5\n',
}
WRONG = [
    (["prose.swf"], r"prose.swf, line 1: .*Standard Workload Format.*'It was a dark"),
    (["prose.txt"], r"prose.txt: must be a workload .*, got 'It was a dark"),
    (["empty.swf"], r"empty.swf: no jobs"),
    (["empty.txt"], r"empty.txt: .*got an empty file"),
    (["only-comments.swf"], r"only-comments.swf: no jobs"),
    (["bad-line.swf"], r"bad-line.swf, line 3: column 4 \(run\): must be a number, got 'ten'"),
    (["short-line.swf"], r"short-line.swf, line 2: must have 18 numbers, got 4"),
    (["no-size.swf"], r"missing processors: log 'no-size'"),
    (["bad.toml"], r"bad.toml, parameters.job: unknown key"),
    (["missing.swf"], r"missing.swf: no such file"),
    (["lublin-265"], r"unknown workload 'lublin-265'; did you mean 'lublin-256'\?"),
    (["probe-4", "--policy", "esay"], r"unknown policy 'esay'; did you mean 'easy'\?"),
    (["probe-4", "--policy", "nowhere:mine"], r"policy 'nowhere:mine': No module named 'nowhere'"),
    (
        ["probe-4", "--policy", "os:path"],
        r"policy 'os:path': must be a policy name, an object with decide\(view\).*, got <module",
    ),
    (["probe-4", "--policy", ":mine"], r"policy ':mine': cannot import ''"),
    (["probe-4", "--policy", ""], r"unknown policy ''"),
    (
        ["probe-4", "--platform", "hetsim-slow"],
        r"must be a platform that runs jobs, got a machine: 'simmodel machine'",
    ),
    (["probe-4", "--at", "5"], r"--at needs --snapshot"),
    (["probe-4", "--at", "5", "--until", "4", "--snapshot", "s.json"], r"--at and --until exclude each other"),
    ([""], r"must be the name of a workload or a path, got ''"),
    (["probe-4", "--order", "shortest"], r"unknown order 'shortest'"),
    (["probe-4", "--order", "sjf", "--backfill", "eager"], r"--backfill: unknown value 'eager'; known values: none"),
    (["probe-4", "--backfill", "conservative", "--backfill-order", "sjf"], r"needs --backfill easy, got conservative"),
    (["probe-4", "--policy", "easy", "--order", "sjf"], r"--policy and --order exclude each other"),
    (["probe-4", "--processors", "0"], r"--processors: must be a whole number >= 1, got '0'"),
    (["probe-4", "--processors", "-4"], r"--processors: must be a whole number >= 1, got '-4'"),
    (["probe-4", "--processors", "many"], r"--processors: must be a whole number >= 1, got 'many'"),
    (["probe-4", "--platform", "atlantis"], r"'atlantis'"),
    (["probe-4", "--platform", "prose.txt"], r"prose.txt"),
    (["probe-4", "--seed", "-1"], r"--seed: must be a whole number >= 0, got '-1'"),
    (["probe-4", "--until", "0"], r"--until: must be a time > 0 in seconds, or such as 90min, 12h or 2d, got '0'"),
    (["probe-4", "--until", "nan"], r"--until: must be a time > 0 .*, got 'nan'"),
    (["probe-4", "--schedule", "no/such/folder.csv"], r"no/such/folder.csv: cannot be written: no folder"),
    (["probe-4", "--json", "."], r"must be a file to write, got a folder"),
    (["probe-4", "--plot", "run.xls"], r"run.xls: must be a picture .*, got '.xls'"),
    (["probe-4", "--pol", "easy"], r"unknown option '--pol'; did you mean '--policy'\? Known options: "),
    ([], r"missing LOG"),
]


@pytest.mark.parametrize(
    ("arguments", "sentence"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_wrong_input_gets_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    before = {path.name for path in folder.iterdir()}
    status = main(["batch", *arguments])
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert re.match(r"simmodel( batch)?: ", err), err
    assert err.count("\n") == 1
    assert re.search(sentence, err), err
    assert {path.name for path in folder.iterdir()} == before


def test_what_cannot_be_written_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("no device here that is always full")
    assert main(["batch", "probe-4", "--schedule", "/dev/full"]) == 2
    out, err = capsys.readouterr()
    assert err == "simmodel: /dev/full: cannot be written: no space left on device\n"
    assert "mean wait" in out  # the summary is printed all the same


def command(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "simmodel", *arguments], capture_output=True, text=True, timeout=600, **options
    )


def test_a_process_ends_with_status_2_and_no_traceback(folder: Path) -> None:
    (folder / "prose.swf").write_text(FILES["prose.swf"])
    for arguments in (["batch", "prose.swf"], ["batch", "probe-4", "--policy", "esay"], ["frobnicate"]):
        done = command(*arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error(folder: Path) -> None:
    writing = [sys.executable, "-m", "simmodel", "generate", "lublin", "--jobs", "20000"]
    with subprocess.Popen(writing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(";")
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


# ---------------------------------------------------------------------- compare, generate, list


def test_compare_gives_one_table_and_one_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--policies", "fcfs,easy, sjf+easy", "--table", "t.csv", "--plot", "c.png"]
    assert main(["compare", "lublin-128-week", *arguments]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "lublin-128-week: 600 jobs on 128 processors"
    assert [line.split()[0] for line in said[3:6]] == ["fcfs", "easy", "sjf+easy"]
    rows = schedule(folder / "t.csv")
    assert [row["result"] for row in rows] == ["fcfs", "easy", "sjf+easy"]
    assert float(rows[1]["wait_mean"]) < float(rows[0]["wait_mean"])
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")


def test_compare_in_processes_gives_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "lublin-128-week", "--policies", "fcfs,easy", "--estimates", "exact"]
    assert main(arguments) == 0
    here = capsys.readouterr().out
    assert main([*arguments, "--workers", "2"]) == 0
    assert capsys.readouterr().out == here


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["compare", "lublin-256", "--policies", "easy,esay"], "unknown policy 'esay'"),
        (["compare", "lublin-256", "--policies", "easy,easy"], "duplicate policy 'easy'"),
        (["compare", "lublin-256", "--policies", ","], "at least one policy"),
        (["compare", "missing.swf", "--policies", "easy"], "missing.swf: no such file"),
        (["generate", "lublim"], "unknown model 'lublim'; did you mean 'lublin'?"),
        (
            ["compare", "probe-4", "--policies", "easy", "--platform", "a100x4"],
            "a100x4: must be a platform that runs jobs, got a machine",
        ),
        (["generate", "lublin", "--jobs", "0"], "--jobs: must be a whole number >= 1, got '0'"),
        (["generate", "lublin", "--gap", "5"], "lublin has no option --gap"),
        (["generate", "poisson", "--classes", "batch"], "poisson has no option --classes"),
        (["generate", "mine.toml", "--jobs", "5"], "mine.toml has no option --jobs"),
        (["generate", "poisson", "--size", "300"], "--size: must be <= 256, the processors of the machine, got 300"),
        (["generate", "lublin", "--classes", "batch,sunday"], "'sunday'"),
        (["generate", "poisson", "--gap", "-1"], "--gap: must be a time > 0"),
        (["generate", "lublin", "--load", "-1"], "--load: must be a number > 0, got '-1'"),
        (["generate", "missing.toml"], "missing.toml: no such file"),
        (["generate", "lublin", "-o", "no/such/folder.swf"], "no folder"),
        (["list", "colours"], "unknown kind 'colours'; known kinds: policies, brokers,"),
    ],
)
def test_wrong_input_of_the_other_commands(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    status = main(arguments)
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_settings_that_name_no_processors_are_generated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.toml").write_text('generator = "synthetic"\n[parameters]\njobs = 5\ngap = 10\nrun = 20\nsize = 1\n')
    assert main(["generate", "mine.toml", "-o", "mine.swf"]) == 0
    assert capsys.readouterr().out == "5 jobs written to mine.swf\n"
    assert len(read_swf(folder / "mine.swf")) == 5


def test_a_snapshot_may_be_taken_before_the_first_submission(folder: Path) -> None:
    (folder / "late.swf").write_text("; MaxProcs: 4\n" + LINE.format(1, 100, 10, 1, 1, 10) + "\n")
    assert main(["batch", "late.swf", "--at", "50", "--snapshot", "s.json"]) == 0
    snapshot = ClusterSnapshot.from_json(folder / "s.json")
    assert (snapshot.now, len(snapshot.arrivals)) == (50, 1)


@attrs.frozen
class Slots:
    """A fixed number of slots, each for a job of one processor."""

    slots: int
    name: str = "slots"


@attrs.frozen(kw_only=True)
class SlotOptions(Options):
    """The options of slots."""

    spare: int = attrs.field(default=0, metadata={"help": "slots that are left free"})
    lazy: bool = False


class SlotSystem(JobSystem):
    """Runs jobs of one processor in its slots."""

    kind = "slots"

    def __init__(self, env: Any, spec: Slots, policy: Any = "fcfs", *, spare: int = 0, lazy: bool = False, **more: Any):
        super().__init__(env, spec, policy, places=[CountPool(env, "slots", spec.slots - spare)], **more)


def test_a_kind_of_ones_own_and_its_options_are_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "_KINDS", Entries(dict(kinds._KINDS)))
    monkeypatch.setitem(kinds.SPECS, "slots", Slots)
    kinds.register_kind(kinds.Kind(name="slots", spec=Slots, system=SlotSystem, options=SlotOptions))
    (folder / "own.toml").write_text('kind = "slots"\nslots = 3\n')
    (folder / "log.swf").write_text("".join(LINE.format(i, 0, 10, 1, 1, 10) + "\n" for i in range(1, 5)))
    shared = ["batch", "log.swf", "--platform", "own.toml", "--policy", "fcfs", "--schedule", "out.csv"]
    assert main(shared) == 0
    assert [int(row["start"]) for row in schedule(folder / "out.csv")] == [0, 0, 0, 10]
    assert main([*shared, "--spare", "2", "--lazy"]) == 0
    assert [int(row["start"]) for row in schedule(folder / "out.csv")] == [0, 10, 20, 30]
    assert main([*shared, "--overrun", "continue"]) == 2
    assert capsys.readouterr().err == "simmodel: a slots has no option --overrun\n"
    assert main(["compare", "log.swf", "--platform", "own.toml", "--policies", "fcfs,sjf"]) == 0
    assert "log: 4 jobs on 3 processors" in capsys.readouterr().out
    assert main(["batch", "log.swf", "--processors", "3", "--spare", "1"]) == 2
    assert capsys.readouterr().err == "simmodel: a cluster has no option --spare\n"


def test_generated_logs_are_the_same_for_a_seed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["generate", "lublin", "--jobs", "300", "--processors", "64", "--load", "0.7", "--estimates"]
    for name, seed in (("a.swf", "1"), ("b.swf", "1"), ("c.swf", "2")):
        assert main([*common, "--seed", seed, "-o", name]) == 0
    assert "300 jobs for 64 processors written to a.swf" in capsys.readouterr().out
    texts = [(folder / name).read_text() for name in ("a.swf", "b.swf", "c.swf")]
    assert texts[0] == texts[1] != texts[2]
    log = read_swf(folder / "a.swf")
    assert (len(log), log.processors) == (300, 64)
    assert (log["requested"] >= log["run"]).all()
    assert main(["batch", "a.swf"]) == 0


def test_generate_writes_to_the_terminal_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "poisson", "--jobs", "20", "--processors", "4", "--size", "2"]) == 0
    (folder / "p.swf").write_text(capsys.readouterr().out)
    assert read_swf(folder / "p.swf")["processors"].tolist() == [2] * 20


def test_generate_follows_settings_of_a_file(folder: Path) -> None:
    (folder / "own.toml").write_text('generator = "lublin"\nseed = 5\n[parameters]\njobs = 50\nprocessors = 32\n')
    assert main(["generate", "own.toml", "-o", "own.swf"]) == 0
    assert len(read_swf(folder / "own.swf")) == 50


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        ("policies", ["fcfs", "easy", "conservative-keep", "window", "ORDER+BACKFILL"]),
        ("workloads", ["lublin-256", "probe-4", "fork-join"]),
        ("formats", ["swf", "gwf", "sacct", "pbs", "csv", "wfformat", "hetsim"]),
        ("generators", ["lublin", "random", "database", "layered"]),
        ("platforms", ["hetsim-slow", "hetsim-sample"]),
        ("brokers", ["sgs-t", "siloed"]),
        ("resources", ["pim", "disk", "MODULE:CLASS"]),
        ("evictions", ["lru", "lfu", "size", "fifo"]),
    ],
)
def test_lists_say_what_there_is(capsys: pytest.CaptureFixture[str], kind: str, some: list[str]) -> None:
    assert main(["list", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    begun = [line.split() for line in lines if not line.startswith(" ")]
    assert set(some) <= {words[0] for words in begun}
    assert all(len(words) > 2 for words in begun)  # each with its description
    assert max(map(len, lines)) <= 100
