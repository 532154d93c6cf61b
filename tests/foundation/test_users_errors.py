"""Errors in users' policies, bodies and models: their type stays, a note says where, and the traceback is short."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import simmodel
from simmodel import Cluster, Environment, Job, Observer, Policy, Start, TaskSet, View, compare, simulate, start
from simmodel.experiments import replicate
from simmodel.platform import (
    ArchitectureSpec,
    ClusterSpec,
    LinkSpec,
    MachineSpec,
    MemoryPoolSpec,
    NetworkSpec,
    NodeSpec,
    PartitionSpec,
    ProcessorSpec,
    StorageSpec,
)
from simmodel.resources import (
    BatchedProcessor,
    Link,
    ManyCores,
    MemoryPool,
    Network,
    NodeChoice,
    Processor,
    SharedProcessor,
    SharingRule,
    Storage,
    make_storage,
)

PACKAGE = Path(simmodel.__file__).parent
JOBS = [Job(id=f"j{n}", submit=2 * n, processors=2, run=3) for n in range(4)]


class OwnError(Exception):
    """An error of a user's code."""


def fails(*_given: Any) -> Any:
    raise OwnError("broken")


def as_function(view: View) -> Iterable[Start]:
    for job in view.waiting:
        if job.id == "j2":
            fails()
        yield Start(job, view.places[0])


class AsClass(Policy):
    def decide(self, view: View) -> Any:
        return fails() if view.now > 3 else [Start(job, view.places[0]) for job in view.waiting]


class Broken(Observer):
    def job_started(self, run: Any) -> None:
        fails()


def body(env: Any, job: Any, grant: Any) -> Any:
    yield env.timeout(5)
    fails()


class BadProcessor(Processor):
    def execute(self, task: Any, seconds: float) -> Any:
        yield self.env.timeout(2)
        fails()


class BadCores(ManyCores):
    def admits(self, task: Any, running: Any) -> bool:
        return bool(fails())


class BadRates(SharedProcessor):
    def rates(self, running: Any) -> Any:
        return fails()


class BadBatch(BatchedProcessor):
    def steps(self, task: Any) -> int:
        return 1

    def step(self, batch: Any) -> float:
        return float(fails())


class BadPool(MemoryPool):
    def admits(self, task: Any) -> bool:
        return bool(fails())


class BadChoice(NodeChoice):
    def nodes(self, table: Any, candidates: Any, count: int) -> Any:
        return fails()


def badly(table: Any, candidates: Any, count: int) -> Any:
    return fails()


class BadLink(Link):
    def limit(self, transfer: Any, now: float) -> float:
        return float(fails()) if now else 10.0


class BadRule(SharingRule):
    def rates(self, flows: Any) -> Any:
        return fails()


class BadStorage(Storage):
    def read_bandwidth(self, readers: int) -> float:
        return float(fails()) if self.env.now else 10.0


def on_machine(processor: Any = None, pool: Any = None, cores: int = 1) -> None:
    kinds = ProcessorSpec(name="gpu", type="GPU", architecture="gpu", pool="hbm", cores=cores, model=processor)
    hbm = MemoryPoolSpec(name="hbm", size="1GB", model=pool)
    spec = MachineSpec(pools=[hbm], architectures=[ArchitectureSpec(name="gpu")], processors=[kinds])
    simulate(spec, TaskSet([1.0, 2.0], sizes=[1e6], inputs=[(0,), ()]), "hrr")


def on_nodes(placement: Any) -> None:
    part = PartitionSpec(nodes=[NodeSpec(count=4, cores=2)], placement=placement, exclusive=True)
    simulate(ClusterSpec(partitions=[part]), [Job(nodes=1, run=3)], "fcfs")


def on_links(rule: Any = "maxmin", **how: Any) -> None:
    env = Environment()
    network = Network(env, NetworkSpec(links=[LinkSpec(name="air", bandwidth=10.0, **how)], model=rule))
    env.call_at(3, lambda: network.transfer(100.0, route=["air"]))
    env.run()


def on_storage() -> None:
    env = Environment()
    storage = make_storage(env, StorageSpec(name="disk", read_bandwidth=10.0, model=BadStorage))
    storage.add("data", 20.0)
    env.call_at(3, lambda: storage.read(20.0, file="data"))
    env.run()


def in_environment() -> None:
    env = Environment()
    cluster = Cluster(env, 4, as_function)
    for job in JOBS:
        cluster.submit(job)
    env.run()


def from_outside() -> None:
    sim = start(4, JOBS, "fcfs")
    while (view := sim.next_decision()) is not None:
        sim.decide(as_function(view))


def drawn(seed: int) -> Any:
    return simulate(4, JOBS, as_function)


def with_body() -> None:
    simulate(4, [Job(id="b", body=body)], "fcfs")


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "function": (lambda: simulate(4, JOBS, as_function), "in policy as_function at 4 s: job j2"),
    "class": (lambda: simulate(4, JOBS, AsClass()), "in policy AsClass at 4 s, first waiting: job j2"),
    "simulation": (lambda: start(4, JOBS, as_function).run(), "in policy as_function at 4 s: job j2"),
    "environment": (in_environment, "in policy as_function at 0 s: job j2"),
    "outside": (from_outside, "in policy fcfs at 4 s: job j2"),
    "compare": (lambda: compare(4, JOBS, ["fcfs", as_function]), "in policy as_function at 4 s: job j2"),
    "replicate": (lambda: replicate(drawn, 2), "in policy as_function at 4 s: job j2"),
    "body": (with_body, "in the body of job b at 5 s"),
    "observer": (lambda: simulate(4, JOBS, "fcfs", observers=[Broken()]), "in Broken.job_started at 0 s"),
    "processor": (lambda: on_machine(BadProcessor), "in BadProcessor.execute of gpu at 2 s: task 0"),
    "cores": (lambda: on_machine(BadCores, cores=2), "in BadCores.admits of gpu at 0 s: task 0"),
    "rates": (lambda: on_machine(BadRates, cores=2), "in BadRates.rates of gpu at 0 s"),
    "batch": (lambda: on_machine(BadBatch, cores=2), "in BadBatch.step of gpu at 0 s"),
    "pool": (lambda: on_machine(pool=BadPool), "in BadPool.admits of hbm at 0 s: task 0"),
    "placement": (lambda: on_nodes(BadChoice), "in BadChoice.nodes at 0 s"),
    "placing function": (lambda: on_nodes(badly), "in badly at 0 s"),
    "link": (lambda: on_links(model=BadLink), "in BadLink.limit of air at 3 s"),
    "rule": (lambda: on_links(rule=BadRule), "in BadRule.rates at 3 s"),
    "storage": (on_storage, "in BadStorage.read_bandwidth of disk at 3 s"),
}


def _modules(error: BaseException) -> list[str]:
    """Return the frames of simmodel and of this file in a traceback, from the call in this file on."""
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    return ["user" if each.name == Path(__file__).name else each.stem for each in files]


@pytest.mark.parametrize("case", CASES)
def test_an_error_keeps_its_type_and_says_where(case: str) -> None:
    call, expected = CASES[case]
    with pytest.raises(OwnError, match="broken") as caught:
        call()
    assert caught.value.__notes__ == [expected]


@pytest.mark.parametrize("case", CASES)
def test_a_traceback_has_one_frame_of_simmodel_between_the_call_and_the_code(case: str) -> None:
    with pytest.raises(OwnError) as caught:
        CASES[case][0]()
    error = caught.value
    frames = _modules(error)
    between = [name for name in frames if name != "user"]
    assert len(between) == 1
    if frames[-1] != "user":  # SimPy raises the failure of a process anew, from the failure itself
        assert set(_modules(error.__cause__)) == {"user"}  # type: ignore[arg-type]


@pytest.mark.parametrize("case", ["class", "compare", "processor"])
def test_all_frames_are_there_when_they_are_asked_for(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMMODEL_TRACEBACK", "full")
    with pytest.raises(OwnError) as caught:
        CASES[case][0]()
    assert "environment" in _modules(caught.value)


def test_an_error_of_simmodel_itself_keeps_all_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simmodel.environment.heappop", next)
    with pytest.raises(TypeError) as caught:
        simulate(4, JOBS, "fcfs")
    assert _modules(caught.value)[-1] == "environment"
    assert not hasattr(caught.value, "__notes__")


def test_an_error_in_a_worker_says_where_too() -> None:
    with ProcessPoolExecutor(1) as pool, pytest.raises(OwnError) as caught:
        compare(4, JOBS, ["fcfs", AsClass()], executor=pool)
    note, frames = caught.value.__notes__
    assert note == "in policy AsClass at 4 s, first waiting: job j2"
    assert "in decide" in frames
    assert str(PACKAGE) not in frames


def test_no_hook_is_set_and_a_script_shows_few_frames(tmp_path: Path) -> None:
    script = tmp_path / "own script.py"
    script.write_text(
        "import sys\nhook = sys.excepthook\nfrom simmodel import simulate\n"
        "def mine(view):\n    return view.nothing\n"
        "assert sys.excepthook is hook is sys.__excepthook__\nsimulate(4, 'probe-4', mine)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    files = [line.split('"')[1] for line in done.stderr.splitlines() if line.startswith("  File")]
    assert [Path(each).name for each in files] == ["own script.py", "scenario.py", "own script.py"]
    assert "'View' object has no attribute 'nothing'\nin policy mine at 960 s, first waiting: job 4" in done.stderr
