"""Each ready model in a small system: it is in records, pictures, traces and snapshots like a built-in part."""

import ast
import json
from math import isclose
from pathlib import Path

import pytest

import simmodel.resources.ready
from simmodel import Job, Task, Workflow, simulate, start
from simmodel.foundation.errors import SnapshotError
from simmodel.platform import (
    ArchitectureSpec,
    ClusterSpec,
    FileSpec,
    GridSpec,
    LinkSpec,
    MachineSpec,
    MemoryPoolSpec,
    NetworkSpec,
    NodeSpec,
    PartitionSpec,
    ProcessorSpec,
    SharingModel,
    SiteSpec,
    StorageSpec,
)
from simmodel.platform.models import MODELS, PLACEMENTS
from simmodel.snapshots.snapshot import Snapshot
from simmodel.work.task import DataObject, File
from tests.helpers.statements import statements

FOLDER = Path(simmodel.resources.ready.__file__).parent
COSTS = {"kv": 900, "iteration": 0.1, "prefill": 0.01, "decode": 0.05}


def machine(processor=None, pool=None, link=None):
    """Return a machine with a custom part, under the names ``own``, ``cache`` and ``bus``."""
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="cache", size=220.0, **(pool or {}))],
        architectures=[ArchitectureSpec(name="any")],
        processors=[ProcessorSpec(name="own", type="GPU", architecture="any", pool="cache", **(processor or {}))],
        links=[LinkSpec(name="bus", bandwidth=50.0, between=("ram", "cache"), **(link or {}))],
        home="ram",
    )


def tasks():
    """Return tasks that read five data of 60 bytes each, two at a time."""
    made = [
        Task(
            id=f"t{i}",
            run=2 + i % 3,
            inputs=[f"d{i % 5}", f"d{(i + 2) % 5}"],
            amounts={"prompt": 40 + i, "output": 6 + i % 4},
        )
        for i in range(10)
    ]
    return Workflow(made, files=[DataObject(f"d{i}", 60.0) for i in range(5)])


def grid(storage=None, network=None, link=None):
    """Return a grid of two sites with a custom part."""
    files = [FileSpec(name=f"f{i}", size=40.0 + 9 * i, sites=["a"]) for i in range(6)]
    wan = LinkSpec(name="bus", bandwidth=30.0, between=("a", "b"), **(link or {}))
    sites = [
        SiteSpec(name="a", cores=2, storage=StorageSpec(read_bandwidth=20.0, write_bandwidth=15.0, **(storage or {}))),
        SiteSpec(name="b", cores=2),
    ]
    return GridSpec(sites=sites, network=NetworkSpec(links=[wan], **(network or {})), files=files)


def jobs():
    """Return jobs that read two files and write one."""
    return [
        Job(
            id=i,
            submit=0.5 * i,
            run=1.0 + i % 3,
            requested=500,
            inputs=[f"f{i % 6}", f"f{(i + 2) % 6}"],
            outputs=[File(name=f"o{i}", size=30.0)],
        )
        for i in range(8)
    ]


def on_machine(**parts):
    return lambda: (machine(**parts), tasks(), "hrr", {"own", "cache", "bus"})


def on_grid(**parts):
    return lambda: (grid(**parts), jobs(), "round-robin", {"a", "b"})


def on_nodes():
    part = PartitionSpec(name="batch", nodes=[NodeSpec(count=6, cores=4)], placement="contiguous", exclusive=True)
    work = [Job(id=i, submit=i, nodes=1 + i % 3, cores_per_node=4, run=3 + i % 4, requested=9) for i in range(9)]
    return ClusterSpec(partitions=[part]), work, "easy", {"batch"}


SYSTEMS = {
    "multi-stream-gpu": on_machine(processor={"model": "multi-stream-gpu", "cores": 3, "options": {"share": 0.5}}),
    "llm-server": on_machine(processor={"model": "llm-server", "cores": 3, "options": COSTS}),
    "pim": on_machine(processor={"model": "pim", "options": {"scatter": 40.0}}),
    "page-cache": on_machine(pool={"model": "page-cache", "options": {"page": 8}}),
    "pinned": on_machine(pool={"model": "pinned", "options": {"pinned": ["d0"]}}),
    "tdma": on_machine(link={"model": "tdma", "options": {"slots": ["ram", "cache"], "slot": 0.5}}),
    "lossy": on_machine(link={"model": "lossy", "options": {"loss": 0.2}}),
    "disk": on_grid(storage={"model": "disk"}),
    "burst-buffer": on_grid(storage={"model": "burst-buffer", "options": {"buffer": 60, "bandwidth": 90}}),
    "tape-library": on_grid(
        storage={"model": "tape-library", "options": {"drives": 2, "mount": 3, "seek": 0.5, "tape": 120}}
    ),
    "equal-split": on_grid(network={"model": SharingModel(name="own", rule="equal-split")}),
    "strict-priority": on_grid(network={"model": SharingModel(name="own", rule="strict-priority")}),
    "contiguous": on_nodes,
}


REFUSED = {
    "tape-library": "storage a cannot be copied: TapeLibrary has snapshots = False",
    "pim": "task t3 cannot be copied: it is inside PIMRank.transfer of own",
}


def ends(result):
    """Return the end of each task or job by name."""
    table = result.tasks if hasattr(result, "tasks") else result.jobs
    key = "task" if "task" in table.names else "job"
    return dict(zip(table[key].tolist(), table["end"].tolist(), strict=True))


def test_every_ready_model_is_here():
    ready = {name for name in MODELS if "simmodel" in str(MODELS[name])}
    ready |= {name for name in PLACEMENTS if "ready" in str(PLACEMENTS[name])}
    assert ready - set(SYSTEMS) == set(), "add a system with it to SYSTEMS"


@pytest.mark.few(4)
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_model_is_in_records_pictures_traces_and_snapshots(name, tmp_path):
    spec, work, policy, parts = SYSTEMS[name]()
    result = simulate(spec, work, policy, seed=1)
    whole = ends(result)
    assert len(whole) == len(work)
    assert all(end > 0 for end in whole.values())
    # Pictures.
    import matplotlib.pyplot as plt

    figure = result.plot.overview()
    assert figure.axes
    plt.close(figure)
    # Traces: its work in the lanes of the resources.
    result.to_perfetto(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    named = {str(event["args"].get("name")) for event in events if event["ph"] == "M"}
    named |= {event["name"] for event in events if event["ph"] == "C"}
    assert all(any(part in lane for lane in named) for part in parts), named
    assert sum(event.get("ph") == "X" for event in events) >= len(work)
    # Snapshots: a cut run ends as the whole one, or is refused in one sentence.
    cut = start(spec, work, policy, seed=1)
    cut.run(until=0.4 * max(whole.values()))
    if name in REFUSED:
        with pytest.raises(SnapshotError, match=REFUSED[name]):
            cut.snapshot()
        return
    rest = ends(simulate(Snapshot.from_json(cut.snapshot().to_json())))
    assert rest
    assert all(isclose(end, whole[key], rel_tol=1e-9) for key, end in rest.items())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_ready_model_is_short(path):
    for model in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)):
        assert statements(ast.walk(model)) <= 50, model.name
