"""Safe loading: limits, pipes, encodings, clipped messages, and policies named by data."""

import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from simmodel import (
    Job,
    Scenario,
    Task,
    Workflow,
    Workload,
    load_result,
    load_scenario,
    load_workload,
    simulate,
    start,
    what_if,
)
from simmodel.catalogue import load_platform, load_tasks, load_workflow
from simmodel.cli import main
from simmodel.formats.documents import read_xml
from simmodel.formats.named_columns import read_columns
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import Limits, current_limits, limits, parse_json, parse_toml, read_bytes, read_lines
from simmodel.foundation.workers import map_on, worker_pool
from simmodel.futures.executors import run_all
from simmodel.generators.settings import generate
from simmodel.platform import from_dict
from simmodel.snapshots import Snapshot
from simmodel.work.transformations import scale_load
from tests.helpers.commands_there import SPELLED

SWF = "1 0 -1 100 5 -1 -1 5 120 -1 1 7 -1 -1 -1 -1 -1 -1\n"


# ---------------------------------------------------------------------- limits


def test_a_gzip_bomb_is_refused(tmp_path) -> None:
    (tmp_path / "bomb.swf.gz").write_bytes(gzip.compress(b"\n" * 5_000_000))
    with limits(size=1e6), pytest.raises(InputError, match=r"bomb\.swf\.gz: must be at most 1,000,000 bytes"):
        load_workload(tmp_path / "bomb.swf.gz")


@pytest.mark.parametrize("read", [simulate, load_result, lambda path: what_if(path, ["fcfs"])])
def test_half_a_compressed_file_is_refused_in_one_sentence(read, tmp_path) -> None:
    path = tmp_path / "state.json.gz"
    start(4, [Job(run=10)], "fcfs").run(until=5).snapshot().to_json(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"state\.json\.gz: corrupt gzip file"):
        read(str(path))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 200 + "1" + "}" * 200, "[" * 150 + "]" * 150])
def test_deep_json_is_refused(text) -> None:
    with pytest.raises(InputError, match="nested deeper than 100 levels"):
        parse_json(text)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a" + ".a" * 100_000 + " = 1", "a = " + "[" * 150 + "]" * 150]
)
def test_deep_toml_is_refused(text) -> None:
    with pytest.raises(InputError, match="nested deeper than 100 levels"):
        parse_toml(text.encode())


def test_deep_xml_is_refused() -> None:
    with pytest.raises(InputError, match="line 1: must not be nested deeper than 100 levels"):
        read_xml(io.StringIO("<a>" * 100_000))


def test_a_limit_can_be_raised() -> None:
    deep = "[" * 150 + "]" * 150
    with limits(depth=200):
        assert parse_json(deep)
    with pytest.raises(InputError, match="unknown limit 'dept'; did you mean 'depth'"), limits(dept=1):
        pass
    with pytest.raises(InputError, match="limit depth: must be a number > 0, got 0"), limits(depth=0):
        pass


def test_numbers_and_nesting_that_python_does_not_read_are_one_sentence() -> None:
    with limits(digits=1e12, depth=1e12):
        for text in ("9" * 5000, "[" * 100_000):
            for parse in (parse_json, lambda text: parse_toml(f"a = {text}".encode())):
                with pytest.raises(InputError):
                    parse(text)


def _depth(_: int) -> float:
    return current_limits().depth


def test_limits_hold_in_threads_and_worker_processes() -> None:
    with limits(depth=7):
        for kind in (ThreadPoolExecutor, worker_pool):
            with kind(1) as pool:
                assert list(map_on(pool, _depth, [0])) == [7]
                assert [each.value for each in run_all(_limit_left, "depth", [0], executor=pool)] == [7]


def _limit_left(name: str, _task: int, _left: float | None) -> float:
    return getattr(current_limits(), name)


def test_options_raise_limits(tmp_path, capsys) -> None:
    (tmp_path / "log.swf").write_text(SWF)
    (tmp_path / "p.toml").write_text('kind = "cluster"\n[[partitions]]\nnodes = [{ count = 20, cores = 4 }]\n')
    replay = ["batch", str(tmp_path / "log.swf"), "--platform", str(tmp_path / "p.toml")]
    for given, status, said in (
        (["--limit", "count=10", "--limit", "size=1kB"], 2, "count: must be at most 10 (limit count), got 20"),
        (["--limit", "count=10", "--limit", "size=10B"], 2, "must be at most 10 bytes (limit size)"),
        (["--limit", "size=10B", "--limit", "size=1kB"], 0, ""),
        (["--limit", "cuont=20"], 2, "--limit: unknown limit 'cuont'; did you mean 'count'?"),
        (["--limit", "count"], 2, "--limit: must be NAME=N, such as size=16GB, got 'count'"),
        (["--limit", "size=16s"], 2, "--limit: must be a quantity in B such as '64GB', got '16s'"),
        (["--limit", "depth=0"], 2, "--limit: must be a number > 0, got '0'"),
    ):
        assert main([*replay, *given]) == status
        assert said in capsys.readouterr().err
    assert current_limits() == Limits()


NOT_READING = ("completion", "demo", "list", "twin install-hooks")
READING = [name for name in SPELLED if name not in NOT_READING]


@pytest.mark.parametrize("name", READING)
def test_every_command_that_reads_files_documents_the_limits(name, capsys) -> None:
    assert main([*name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert "--limit NAME=N" in said
    usual = Limits()
    text = f"size ({usual.size / 1e9:g}GB, digits {usual.digits}, depth {usual.depth}, count {usual.count}"
    for word in re.findall(r"\w+", text):
        assert word in said


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda path: load_platform(path), "must be at most 10,000,000 .limit count., got 1000000000"),
        (lambda _: load_tasks("random:tasks=1000000000000"), "tasks: must be at most 10,000,000"),
        (lambda _: load_tasks("layered:n=1000000000"), "n: must be at most 10,000,000"),
    ],
)
def test_large_counts_are_refused(read, said, tmp_path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('kind = "cluster"\n[[partitions]]\nnodes = [{ count = 1_000_000_000, cores = 4 }]\n')
    with pytest.raises(InputError, match=said):
        read(path)


@pytest.mark.parametrize("digits", [19, 400, 5000])
def test_large_numbers_are_refused(digits, tmp_path) -> None:
    number = "9" * digits
    (tmp_path / "p.toml").write_text(f'kind = "cluster"\n[[partitions]]\nprocessors = {number}\n')
    (tmp_path / "log.swf").write_text(SWF.replace(" 5 ", f" {number} ", 1))
    (tmp_path / "log.csv").write_text(f"submit,run,processors\n0,10,{number}\n")
    for name, load in (("p.toml", load_platform), ("log.swf", load_workload), ("log.csv", load_workload)):
        with pytest.raises(InputError, match=r"line [123]|partitions") as caught:
            load(tmp_path / name)
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"parameters": {"jobs": float("nan")}},
            r"parameters\.jobs: must be at most 10,000,000 .limit count., got nan",
        ),
        ({"parameters": {"jobs": 5}, "estimates": {"maximum": 1e308}}, r"maximum: must be at most 1e\+12 s"),
        ({"parameters": {"jobs": 5}, "seed": 0.5}, "seed: must be a whole number >= 0, got 0.5"),
    ],
)
def test_settings_that_never_end_are_refused(settings, said) -> None:
    with pytest.raises(InputError, match=said):
        generate({"generator": "lublin", **settings})


# ---------------------------------------------------------------------- pipes and encodings


def by_pipe(command: str, data: bytes, *, compressed: bool = False) -> str:
    """Run a command of bash in which INPUT is a pipe."""
    feed = gzip.compress(data) if compressed else data
    done = subprocess.run(["bash", "-c", command], input=feed, capture_output=True, check=False)
    return done.stdout.decode() + done.stderr.decode()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("where", "compressed"),
    [
        *(("-", True), ("/dev/stdin", False), ("<(cat)", True)),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (("-", False), ("/dev/stdin", True), ("<(cat)", False))
        ),
    ],
)
def test_logs_come_through_pipes(where, compressed) -> None:
    command = f"{shlex.quote(sys.executable)} -m simmodel batch {where} --processors 8 --policy fcfs"
    said = by_pipe(command, SWF.encode() * 1 + SWF.replace("1 0", "2 5", 1).encode() * 1, compressed=compressed)
    assert "error" not in said.lower()
    assert "2 jobs" in said or "jobs" in said
    assert "no job" not in said


def test_settings_and_platforms_come_through_pipes(tmp_path) -> None:
    settings = b'generator = "layered"\n[parameters]\nn = 8\n'
    platform = b'kind = "cluster"\n[[partitions]]\nprocessors = 8\n'
    dot = b'digraph { 1 [size="2e9"] 2 [size="3e9"] 1 -> 2 [size="800"] }'
    for data, load, check in (
        (settings, load_tasks, lambda work: len(work) == 8),
        (platform, load_platform, lambda spec: spec.processors == 8),
        (dot, load_workflow, lambda flow: len(flow) == 2),
    ):
        fifo = tmp_path / f"pipe-{load.__name__}"
        os.mkfifo(fifo)
        with subprocess.Popen(["bash", "-c", f"cat > {fifo}"], stdin=subprocess.PIPE) as writer:
            assert writer.stdin is not None
            writer.stdin.write(data)
            writer.stdin.close()
            assert check(load(fifo))


def test_utf_8_with_mark_and_utf_16_are_read_and_binary_is_refused() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        lines, _ = read_lines(io.BytesIO("é\nb\n".encode(encoding)))
        assert [line for _, line in lines] == ["é", "b"]
    with pytest.raises(InputError, match="must be text, got binary data"):
        read_bytes(io.BytesIO(b"a\0b"))
    with pytest.raises(InputError, match="must be UTF-8 text, got byte 0xe9"):
        parse_toml(b"a = '\xe9'")


# ---------------------------------------------------------------------- messages


def test_messages_are_short_and_printable(tmp_path) -> None:
    assert len(shown("x" * 100_000)) <= 60
    assert len(str(unknown("key", "x" * 100_000, ["a"]))) < 200
    (tmp_path / "log.swf").write_text(SWF + SWF.replace("100", "x" * 5000 + "\x1b[31m", 1))
    with pytest.raises(InputError, match="line 2") as caught:
        load_workload(tmp_path / "log.swf")
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()
    assert str(InputError("wrong", source="a\x1b[2J\nb")) == "a\\x1b[2J\\nb: wrong"


# ---------------------------------------------------------------------- policies named by data


@pytest.fixture
def marked(tmp_path, monkeypatch) -> Path:
    """Return a file that exists once the module ``evil_policy`` was imported."""
    (tmp_path / "evil_policy.py").write_text(
        "from pathlib import Path\nfrom simmodel.policies.ordering import FCFS as Mine\n"
        f"Path({str(tmp_path / 'imported')!r}).touch()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "evil_policy", raising=False)
    return tmp_path / "imported"


def test_a_snapshot_imports_no_code(marked, tmp_path) -> None:
    simulation = start(2, [Job(processors=2, run=5), Job(processors=2, run=5)], "fcfs")
    simulation.run(until=1)
    document = json.loads(simulation.system.snapshot().to_json())
    document["policy"] = {"name": "mine", "known_as": "evil_policy:Mine"}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document))
    for read in (Snapshot.from_json, lambda path: what_if(path, ["fcfs"])):
        with pytest.raises(InputError, match=r"policy.known_as: must be a known policy, .* trust=True"):
            read(path)
    assert not marked.exists()
    assert simulate(Snapshot.from_json(path, trust=True)).jobs["end"].tolist() == [5, 10]
    assert marked.exists()


def test_a_stored_scenario_imports_no_code(marked, tmp_path) -> None:
    result = simulate(2, Workload({"submit": [0], "run": [5], "processors": [1]}), "fcfs")
    result.to_json(tmp_path / "r.json", jobs=True)
    document = json.loads((tmp_path / "r.json").read_text())
    document["scenario"]["policy"] = "portfolio(fcfs, evil_policy:Mine)"
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"r\.json, policy: must be a known policy"):
        load_scenario(tmp_path / "r.json")
    assert not marked.exists()
    assert load_scenario(tmp_path / "r.json", trust=True).policy.startswith("portfolio")


def test_the_objective_of_a_portfolio_is_no_module(tmp_path) -> None:
    chosen = "portfolio(fcfs, sjf, objective=raw: wait_mean)"
    simulate(2, Workload({"submit": [0], "run": [5], "processors": [1]}), chosen).to_csv(tmp_path)
    assert load_scenario(tmp_path).run().jobs["end"].tolist() == [5]


CUSTOM = """kind = "machine"
pools = [{ name = "ram" }]
architectures = [{ name = "gpu" }]
processors = [{ name = "g", type = "GPU", architecture = "gpu", pool = "ram", model = "evil_policy:Own" }]
"""


def test_a_platform_file_imports_no_code(marked, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Path("evil_policy.py").open("a") as file:
        file.write("from simmodel.resources import Processor as Own\n")
    Path("p.toml").write_text(CUSTOM)
    places = f"[places.a]\n{CUSTOM}"
    Path("b.toml").write_text(f'kind = "broker"\n{places}')
    work = Workflow([Task(id="a", run=5)])
    for read in (load_platform, lambda path: simulate(path, work, "hrr"), lambda path: simulate([path], work)):
        for name, place in (("p.toml", "processors"), ("b.toml", "places.a.processors")):
            with pytest.raises(InputError) as caught:
                read(name)
            assert str(caught.value).startswith(f"{name}, {place}[0].model: must be a known model, got 'evil_policy:")
    assert main(["machine", "p.toml", "random:tasks=3"]) == 2
    assert main(["explore", "--platforms", "p.toml", "--workloads", "random:tasks=3", "--policies", "hrr"]) == 2
    said = capsys.readouterr().err
    assert said.count("pass trust=True (--trust) if you trust the file") == said.count("\n") == 2
    assert not marked.exists()
    result = simulate(load_platform("p.toml", trust=True), work, "hrr")
    assert marked.exists()
    assert main(["machine", "p.toml", "random:tasks=3", "--trust", "-q"]) == 0
    result.to_csv("r")
    with pytest.raises(InputError, match=r"^r, processors.0..model: must be a known model"):
        load_scenario("r")
    assert load_scenario("r", trust=True).run().tasks["end"].tolist() == [5]


@pytest.mark.parametrize("trust", [False, True])
def test_machine_and_broker_snapshots_import_no_code(trust, marked, tmp_path) -> None:
    (tmp_path / "evil_policy.py").write_text(
        (tmp_path / "evil_policy.py").read_text() + "from simmodel.resources import Processor as Own\n"
    )
    spec = parse_toml(CUSTOM.encode().replace(b"evil_policy:Own", b"simmodel.resources:Processor"))
    simulation = start(from_dict(spec), Workflow([Task(id="a", run=5)]), "hrr")
    simulation.run(until=1)
    machine = simulation.system.snapshot().to_json().replace("simmodel.resources:Processor", "evil_policy:Own")
    below = start([2, 2], [Job(run=5)], "random")
    below.run(until=1)
    broker = below.system.snapshot().to_json().replace('"known_as":"easy"', '"known_as":"evil_policy:Mine"', 1)
    for text in (machine, broker):
        assert "evil_policy" in text
        if trust:
            simulate(Snapshot.from_json(text, trust=True))
            continue
        with pytest.raises(InputError, match="which imports code: pass trust=True"):
            Snapshot.from_json(text)
    assert marked.exists() == trust


def test_the_policies_below_a_stored_broker_are_names(marked, tmp_path) -> None:
    result = simulate([2, 2], [Job(run=5)], "random", policies="fcfs")
    document = {**result.scenario}
    for value, said in (("evil_policy:Mine", "must be a known policy"), ({"x": "evil_policy:Mine"}, "must be a name")):
        document["policies"] = dict.fromkeys(result.scenario["policies"], value)
        with pytest.raises(InputError, match=said):
            Scenario.from_document(document)
    assert not marked.exists()


def test_arrivals_out_of_order_are_refused() -> None:
    log = Workload({"submit": [0, 5, 9, 12], "run": [5] * 4, "processors": [1] * 4}, processors=4)
    simulation = start(None, log, "fcfs")
    simulation.run(until=1)
    document = json.loads(simulation.system.snapshot().to_json())
    assert Snapshot.from_json(json.dumps(document)).unfinished == 4
    document["arrivals"]["submit"] = [5, 1e18, 12]
    with pytest.raises(InputError, match=r"planned\[\d\]: must be valid arguments of 'arrivals'"):
        Snapshot.from_json(json.dumps(document))


# ---------------------------------------------------------------------- logs


def test_circular_preceding_jobs_are_rejected() -> None:
    log = Workload(
        {"job": [1, 2, 3], "submit": [0, 0, 0], "run": [5, 5, 5], "processors": [1, 1, 1], "preceding": [2, 1, 1]}
    )
    result = simulate(4, log, "fcfs")
    assert result.report.rejected == {"circular preceding jobs": 2}
    assert result.jobs["status"].tolist() == ["rejected", "rejected", "cancelled"] or result.jobs["end"][2] > 0


def test_an_empty_job_number_beside_a_priority() -> None:
    log = read_columns(io.StringIO("job,submit,run,processors,priority\n1,0,5,1,3\n,1,5,1,4\n"))
    assert simulate(4, log, "fcfs").jobs["end"].tolist() == [5, 6]


def test_duplicate_columns_are_refused() -> None:
    with pytest.raises(InputError, match="line 1: duplicate column 'run'"):
        read_columns(io.StringIO("submit,run,run\n0,5,6\n"))


def test_a_load_too_small_for_instants_is_refused() -> None:
    log = Workload({"submit": [0, 100], "run": [5, 5], "processors": [1, 1]}, processors=4)
    with pytest.raises(ValueError, match=r"to: must be large enough for finite instants, got 1e-320"):
        scale_load(log, to=1e-320)
    assert np.isfinite(scale_load(log, to=1e-3)["submit"]).all()
