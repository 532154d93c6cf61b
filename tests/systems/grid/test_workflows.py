"""Workflows over the sites of a grid: an edge is a file, written where the parent ran, and staged to the child."""

from itertools import combinations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import (
    Branch,
    Environment,
    Grid,
    InputError,
    Job,
    Task,
    Workflow,
    load_workflow,
    simulate,
    start,
    what_if,
)
from simmodel.platform import (
    FileSpec,
    GridSpec,
    LinkSpec,
    NetworkSpec,
    NodeSpec,
    SiteOutageSpec,
    SiteSpec,
    StorageSpec,
)
from simmodel.snapshots import Snapshot
from simmodel.work import Dependency, File
from tests.helpers.data_files import data_file

ONLINE = ("data-locality", "earliest-finish", "round-robin")
COLUMNS = ("site", "state", "attempts", "assigned", "queued", "start", "executing", "end", "finished", "bytes_in")


def sites(names="abc", cores=8, bandwidth=10e6, latency=0.01, storage=None, hosts=(), **options):
    """Return a grid of equal sites, each pair of which has a link."""
    capacity = {"hosts": hosts} if hosts else {"cores": cores}
    return GridSpec(
        sites=[SiteSpec(name=name, storage=storage or StorageSpec(), **capacity) for name in names],
        network=NetworkSpec(
            links=[
                LinkSpec(name=x + y, bandwidth=bandwidth, latency=latency, between=(x, y))
                for x, y in combinations(names, 2)
            ]
        ),
        **options,
    )


def diamond(runs=(10, 5, 7, 4), sizes=(100e6, 50e6, 20e6, 30e6), name="diamond"):
    """Return a workflow of four tasks: a, then b and c, then d; bytes from a to b, a to c, b to d, c to d."""
    tasks = [Task(id=each, run=run) for each, run in zip("abcd", runs, strict=True)]
    return Workflow(
        tasks, [(x, y, size) for (x, y), size in zip(("ab", "ac", "bd", "cd"), sizes, strict=True)], name=name
    )


def table(result):
    """Return the site, start, end and finish of each job."""
    return {row["job"]: (row["site"], row["start"], row["end"]) for row in result.jobs.rows()}


def rounded(row):
    """Return the values of a job, its times to 1e-9 s: a transfer that is cut ends with another rounding."""
    return [repr(round(row[name], 9) if isinstance(row[name], float) else row[name]) for name in COLUMNS]


def moved(flow, result, begin):
    """Return the bytes and the number of files that must have moved, from the sites of the jobs alone.

    ``begin``: the site of each file that exists before. A file moves once to each site that reads it, unless it is
    there from the begin or is written there before.
    """
    row = {each["job"]: each for each in result.jobs.rows()}
    total, count = 0, 0
    for name, file in flow.files.items():
        for site in {row[reader]["site"] for reader in flow.readers(name)}:
            first = min(row[reader]["assigned"] for reader in flow.readers(name) if row[reader]["site"] == site)
            writers = [row[writer] for writer in flow.writers(name)]
            if begin.get(name) != site and not any(w["site"] == site and w["finished"] <= first for w in writers):
                total, count = total + file.size, count + 1
    return total, count


def check_order(flow, result):
    """Assert that no task starts before its parents have written their outputs, and all have finished."""
    row = {each["job"]: each for each in result.jobs.rows()}
    assert set(result.jobs["state"].tolist()) == {"finished"}
    for edge in flow.edges:
        assert row[edge.child]["assigned"] >= row[edge.parent]["finished"]
        alone = sum(flow.files[name].size for name in edge.data if len(flow.writers(name)) == 1)
        if alone and row[edge.child]["site"] != row[edge.parent]["site"]:
            assert row[edge.child]["start"] > row[edge.parent]["finished"]


# ---------------------------------------------------------------------- by hand


def test_a_diamond_over_two_sites_in_turn():
    found = simulate(sites("ab", cores=1, latency=1), diamond(), "round-robin")
    # b waits for 100 MB: 1 + 10 s; d runs beside b's output, and waits for c's: 1 + 3 s
    assert table(found) == {"a": ("a", 0, 10), "b": ("b", 21, 26), "c": ("a", 10, 17), "d": ("b", 30, 34)}
    assert [tuple(row.values()) for row in found.flows.rows()] == [("a", "b", 2, 130e6, 0)]
    assert list(found.by_workflow([diamond()]).rows()) == [
        {"workflow": "diamond", "tasks": 4, "finished": 4, "makespan": 34.0, "slr": 34 / 21, "bytes": 130e6}
    ]
    assert list(found.by_workflow([diamond()], speed=2.0)["slr"]) == [68 / 21]


def test_a_diamond_stays_where_its_data_are():
    found = simulate(sites("ab", cores=1, latency=1), diamond(), "data-locality")
    assert table(found) == {"a": ("a", 0, 10), "b": ("a", 10, 15), "c": ("a", 15, 22), "d": ("a", 22, 26)}
    assert not len(found.flows)


def test_a_planned_diamond_takes_as_long_as_its_plan():
    flow = diamond((10, 20, 20, 4), (10e6,) * 4)
    sim = start(sites("ab", cores=1, latency=1), flow, "heft")
    found = sim.run().result()
    # c goes to b, as 10 + 2 + 20 < 50; d follows it: b's output was sent when it was written, at 30
    assert table(found) == {"a": ("a", 0, 10), "b": ("a", 10, 30), "c": ("b", 12, 32), "d": ("b", 32, 36)}
    planned = {job.id: (place.name, begin, end) for job, place, begin, end in sim.system.scheduler.policy.planned}
    assert planned == table(found)
    assert found.flows["bytes"].tolist() == [20e6]


def test_a_plan_counts_the_way_of_the_first_files_and_the_speed_of_hosts():
    flow = Workflow([Task(id="x", run=30, inputs=["raw"])], files=[File("raw", 100e6)])
    slow = attrs.evolve(
        sites("ab", latency=1), sites=[SiteSpec(name="a", cores=1), SiteSpec(name="b", cores=1).with_speed(1.5)]
    )
    assert table(simulate(slow, flow, "heft")) == {"x": ("a", 0, 30)}  # at b: 11 s for the file, and 20 s
    assert table(simulate(slow, {"b": flow}, "heft")) == {"x": ("b", 0, 20)}
    fast = attrs.evolve(slow, sites=[slow.sites[0], SiteSpec(name="b", cores=1).with_speed(2)])
    assert table(simulate(fast, flow, "heft")) == {"x": ("b", 11, 26)}


def test_a_site_is_planned_for_all_its_cores():
    tasks = [Task(id=i, run=10) for i in range(5)]
    flow = Workflow([*tasks, Task(id="last", run=1)], [(task.id, "last") for task in tasks])
    found = simulate(
        attrs.evolve(sites("ab"), sites=[SiteSpec(name="a", cores=3), SiteSpec(name="b", cores=2)]), flow, "heft"
    )
    assert found.jobs["start"].tolist() == [0, 0, 0, 0, 0, 10]
    assert found.sites["jobs"].tolist() == [4, 2, 6]


# ---------------------------------------------------------------------- real workflows


@pytest.fixture(scope="module")
def montage():
    return load_workflow(data_file("dax/Montage_100.xml.gz"))


@pytest.mark.parametrize("spread", [False, True], ids=["first files at a", "first files everywhere"])
def test_montage_moves_the_edges_whose_ends_are_apart(montage, spread):
    begin = {file.name: "abc"[i % 3] if spread else "a" for i, file in enumerate(montage.inputs)}
    spec = sites()
    if spread:
        spec = attrs.evolve(
            spec, files=[FileSpec(name=f.name, size=f.size, sites=[begin[f.name]]) for f in montage.inputs]
        )
    found = {broker: simulate(spec, montage, broker) for broker in ONLINE}
    for result in found.values():
        check_order(montage, result)
        bytes_, files = moved(montage, result, begin)
        assert result.flows["bytes"].sum() == bytes_ == result.jobs["bytes_in"].sum()
        assert result.flows["files"].sum() == files
    size = {broker: result.flows["bytes"].sum() for broker, result in found.items()}
    assert size["data-locality"] < size["earliest-finish"] < size["round-robin"]
    assert found["earliest-finish"].ended < found["round-robin"].ended


@pytest.mark.parametrize("broker", ["heft", "cpop", "peft", "lookahead"])
def test_montage_is_planned(montage, broker):
    found = simulate(sites(), montage, broker)
    check_order(montage, found)
    least, _ = moved(montage, found, dict.fromkeys([file.name for file in montage.inputs], "a"))
    assert found.flows["bytes"].sum() >= least  # more where tasks write one name at several sites
    turn = simulate(sites(), montage, "round-robin")
    assert found.ended < turn.ended
    assert found.flows["bytes"].sum() < turn.flows["bytes"].sum()


@pytest.mark.few(11)
@pytest.mark.parametrize(
    "name",
    [
        "dax/CyberShake_30.xml.gz",
        "dax/Epigenomics_24.xml.gz",
        "dax/Sipht_30.xml.gz",
        "wfformat/epigenomics-chameleon-hep-1seq-100k-001.json.gz",
        "wfformat/montage-chameleon-2mass-005d-001.json.gz",
        pytest.param("dax/CyberShake_1000.xml.gz", marks=pytest.mark.long),
        pytest.param("dax/Epigenomics_997.xml.gz", marks=pytest.mark.long),
        pytest.param("wfformat/montage-chameleon-dss-15d-001.json.gz", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("broker", ["data-locality", "round-robin", "heft"])
def test_real_workflows_over_hosts(name, broker):
    repair = {"repair": True} if "Epigenomics_997" in name else {}  # sizes that overflowed 32 bits
    flow = load_workflow(data_file(name), **repair)
    found = simulate(sites(hosts=[NodeSpec(count=4, cores=8)], bandwidth=125e6), flow, broker)
    check_order(flow, found)
    least, _ = moved(flow, found, dict.fromkeys([file.name for file in flow.inputs], "a"))
    assert (
        found.flows["bytes"].sum() == pytest.approx(least) if broker != "heft" else found.flows["bytes"].sum() >= least
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("broker", [*ONLINE, "heft"])
def test_montage_cut_and_continued(montage, broker):
    whole = simulate(sites(), montage, broker)
    rows = {row["job"]: rounded(row) for row in whole.jobs.rows()}
    for cut in (1.0, 13.7, 17.25, 31.0, 60.5, 90.0):
        sim = start(sites(), montage, broker).run(until=cut)
        snapshot = Snapshot.from_json(sim.snapshot().to_json())
        again = simulate(snapshot)
        assert len(again.jobs)
        for row in again.jobs.rows():
            assert rounded(row) == rows[row["job"]], (cut, row["job"])


# ---------------------------------------------------------------------- several workflows


def test_several_workflows_have_tasks_and_files_of_their_own():
    raw = Workflow([Task(id="r", run=1, inputs=["raw"], outputs=["out"])], files=[File("raw", 5), File("out", 7)])
    spec = sites("ab", cores=1)
    found = simulate(spec, [raw, (3.0, raw), diamond()], "round-robin")
    assert found.jobs["job"].tolist() == ["workflow-1:r", "workflow-2:r", *(f"diamond:{each}" for each in "abcd")]
    assert found.jobs["submit"].tolist() == [0, 3, 0, 0, 0, 0]
    assert set(found.jobs["state"].tolist()) == {"finished"}
    rows = list(found.by_workflow([raw, (3.0, raw), diamond()]).rows())
    assert [(row["workflow"], row["tasks"], row["finished"]) for row in rows] == [
        ("workflow-1", 1, 1),
        ("workflow-2", 1, 1),
        ("diamond", 4, 4),
    ]
    sim = start(spec, [raw, (3.0, raw)], "round-robin").run()
    assert sim.system.data.catalogue.names() == ["raw", "workflow-1:out", "workflow-2:out"]
    assert all(row["makespan"] > 0 for row in rows)


def test_first_files_of_two_sizes_are_two_files():
    flows = [
        Workflow([Task(id="r", run=1, inputs=["raw", "same"])], files=[File("raw", size), File("same", 9)], name=name)
        for name, size in (("x", 5), ("y", 6))
    ]
    sim = start(sites("ab"), flows).run()
    catalogue = sim.system.data.catalogue
    assert {name: catalogue.size(name) for name in catalogue.names()} == {"x:raw": 5, "same": 9, "y:raw": 6}


def test_homes_say_where_first_files_begin(tmp_path):
    flow = Workflow([Task(id="r", run=1, inputs=["raw"])], files=[File("raw", 5)])
    found = simulate(sites(), {"b": flow}, "data-locality")
    assert found.jobs["site"].tolist() == ["b"]
    assert found.report.notes == ("workflow: 1 file that must exist before its tasks run begin at b",)
    both = simulate(sites(), {"b": flow, "c": flow}, "round-robin")
    assert both.jobs["job"].tolist() == ["workflow-1:r", "workflow-2:r"]
    listed = attrs.evolve(sites(), files=[FileSpec(name="raw", size=5, sites=["c"])])
    assert simulate(listed, {"b": flow}, "data-locality").jobs["site"].tolist() == ["c"]
    with pytest.raises(InputError, match=r"unknown place 'd'"):
        simulate(sites(), {"d": flow}, "round-robin")


def test_a_workflow_joins_a_running_grid():
    sim = start(sites("ab", cores=1, latency=1), diamond(), "round-robin").run(until=5)
    later = diamond(name="later").labelled("later")
    found = simulate(sim.snapshot(), [(5.0, later)])
    assert set(found.jobs["state"].tolist()) == {"finished"}
    assert len(found.jobs) == 8
    with pytest.raises(InputError, match="by no other job: pass several workflows together"):
        sim.system.replay(diamond())


# ---------------------------------------------------------------------- unkind cases


def test_a_later_workflow_is_planned_around_what_runs():
    sim = start(sites("ab", cores=1), Workflow([Task(id="long", run=100)]), "heft").run(until=5)
    found = simulate(sim.snapshot(), [(5.0, Workflow([Task(id="short", run=1)]))])
    assert table(found) == {"long": ("a", 0, 100), "short": ("b", 5, 6)}


def test_a_storage_without_room_fails_its_tasks_and_keeps_what_is_needed():
    spec = sites("ab", cores=1, latency=1)
    small = attrs.evolve(spec, sites=[spec.sites[0], attrs.evolve(spec.sites[1], storage=StorageSpec(capacity=110e6))])
    found = simulate(small, diamond(), "round-robin")
    # b writes 20 MB beside its input of 100 MB, which is no last replica and goes
    assert found.jobs["state"].tolist() == ["finished"] * 4
    tiny = attrs.evolve(spec, sites=[spec.sites[0], attrs.evolve(spec.sites[1], storage=StorageSpec(capacity=90e6))])
    found = simulate(tiny, diamond(), "round-robin")
    assert found.jobs["state"].tolist() == ["finished", "failed", "finished", "cancelled"]
    assert "100000000" in found.jobs["reason"].tolist()[1].replace(",", "")
    kept = start(tiny, diamond(), "round-robin").run().system.data.catalogue
    assert kept.sites_of("a->b") == kept.sites_of("c->d") == ("a",)


def test_first_files_that_do_not_fit_are_refused():
    flow = Workflow([Task(id="r", run=1, inputs=["raw"])], files=[File("raw", 50)])
    with pytest.raises(InputError, match="raw"):
        simulate(sites("ab", storage=StorageSpec(capacity=40)), flow, "round-robin")


def test_a_child_waits_for_the_site_of_its_file():
    spec = sites("ab", cores=1, latency=1, outages=[SiteOutageSpec(site="a", at=12, until=50)], retries=3)
    found = simulate(spec, diamond(), "round-robin")
    # c is lost at a, and goes to b: at 50 both files are sent, 100 and 50 MB over one link, until 66 and 61
    assert table(found)["c"] == ("b", 61, 68)
    assert table(found)["b"] == ("b", 68, 73)
    assert found.jobs["attempts"].tolist() == [1, 1, 2, 1]
    check_order(diamond(), found)
    again = simulate(spec, diamond(), "heft")
    check_order(diamond(), again)


@pytest.mark.parametrize("kind", ["down", "closed"])
def test_a_plan_for_a_site_that_is_gone_is_made_again(kind):
    flow = diamond((10, 20, 20, 4), (10e6,) * 4)
    spec = sites("ab", cores=1, latency=1, outages=[SiteOutageSpec(site="b", at=5, until=500, kind=kind)], retries=1)
    found = simulate(spec, flow, "heft")
    check_order(flow, found)
    assert found.jobs["site"].tolist() == ["a"] * 4
    assert found.ended < 500


def test_one_file_for_many_children_moves_once_to_each_site():
    children = [Task(id=i, run=50, inputs=["big"]) for i in range(12)]
    flow = Workflow([Task(id="root", run=1, outputs=["big"]), *children], files=[File("big", 70e6)])
    found = simulate(sites(cores=4), flow, "round-robin")
    assert [(row["destination"], row["files"]) for row in found.flows.rows()] == [("b", 1), ("c", 1)]
    assert found.jobs["bytes_in"].sum() == 140e6


def test_control_edges_and_files_of_no_bytes():
    flow = Workflow(
        [Task(id="x", run=3), Task(id="y", run=3, outputs=["flag"]), Task(id="z", run=3, inputs=["flag"])],
        [("x", "y"), ("y", "z")],
        [File("flag", 0)],
    )
    found = simulate(sites("ab", cores=1, latency=1), flow, "round-robin")
    assert table(found) == {"x": ("a", 0, 3), "y": ("b", 3, 6), "z": ("a", 7, 10)}  # 1 s of latency for the file
    assert [(row["files"], row["bytes"]) for row in found.flows.rows()] == [(1, 0)]


@pytest.mark.parametrize("broker", ["round-robin", "heft"])
def test_a_task_wider_than_each_site_is_rejected_with_its_children(broker):
    flow = Workflow([Task(id="x", run=3, cores=9), Task(id="y", run=3), Task(id="z", run=1)], [("x", "y")])
    found = simulate(sites(cores=8), flow, broker)
    assert found.jobs["state"].tolist() == ["rejected", "cancelled", "finished"]
    assert found.report.rejected.total() == 1


def test_a_file_that_nobody_has_fails_its_job():
    found = simulate(sites(), [Job(id="x", run=3, inputs=["ghost"])], "data-locality")
    assert found.jobs["reason"].tolist() == ["file ghost exists nowhere"]


def test_a_file_has_one_size():
    flow = Workflow([Task(id="r", run=1, inputs=["raw"])], files=[File("raw", 50)])
    spec = attrs.evolve(sites(), files=[FileSpec(name="raw", size=51, sites=["b"])])
    with pytest.raises(InputError, match=r"file 'raw': must have one size, got 51 and 50 bytes"):
        simulate(spec, flow, "round-robin")


def test_a_file_on_its_way_to_a_site_may_be_written_there():
    # the log of x goes to b, for y, while w writes one of that name there
    flow = Workflow(
        [
            Task(id="x", run=10, outputs=["log"]),
            Task(id="w", run=13, outputs=["log"]),
            Task(id="y", run=1, inputs=["log"]),
        ],
        [("x", "y")],
        [File("log", 50e6)],
    )
    spec = sites("ab", cores=2, latency=1)
    broker = {"x": "a", "w": "b", "y": "b"}

    def fixed(view):
        from simmodel import Start

        for job in view.waiting:
            yield Start(job, next(site for site in view.places if site.name == broker[job.id]))

    whole = simulate(spec, flow, fixed)
    assert table(whole) == {"x": ("a", 0, 10), "w": ("b", 0, 13), "y": ("b", 16, 17)}
    assert whole.jobs["finished"].tolist() == [10, 16, 17]
    snapshot = Snapshot.from_json(start(spec, flow, fixed).run(until=14).snapshot().to_json())
    again = simulate(snapshot, policy=fixed)
    assert dict(zip(again.jobs["job"].tolist(), again.jobs["finished"].tolist(), strict=True)) == {"w": 16, "y": 17}


def test_a_job_may_wait_for_the_start_of_one_with_files():
    spec = sites("ab", files=[FileSpec(name="raw", size=1, sites=["a"])])
    jobs = [Job(id=1, run=10, inputs=["raw"]), Job(id=2, run=1, dependencies=[Dependency(1, after="start")])]
    assert simulate(spec, jobs, "data-locality").jobs["start"].tolist() == [0, 0]


def test_planners_need_the_sites_of_a_grid():
    with pytest.raises(
        InputError, match=r"policy 'heft' decides which place takes each task of a workflow, before it is ready"
    ):
        simulate({"a": 4, "b": 4}, diamond(), "heft")
    with pytest.raises(InputError, match=r"policy 'heft-setup' decides which processor of a machine takes each task"):
        Grid(Environment(), sites(), "heft-setup")


def test_what_ifs_of_a_planned_workflow():
    snapshot = start(sites("ab", cores=1, latency=1), diamond(), "heft").run(until=3).snapshot()
    found = {
        each.name: each.samples[0].measures["turnaround_mean"]
        for each in what_if(snapshot, [Branch("heft"), Branch("round-robin")])
    }
    assert found["heft"] < found["round-robin"]


def test_plans_in_snapshots_are_checked():
    sim = start(sites("ab", cores=1, latency=1), diamond(), "heft").run(until=3)
    snapshot = sim.snapshot()
    assert len(snapshot.plan) == 3
    with pytest.raises(InputError, match=r"plan\[0\]: must be a site below 2, got 2"):
        attrs.evolve(snapshot, plan=((1, 2),)).check()
    with pytest.raises(InputError, match=r"plan\[0\]: must be the row of a job that waits for others, got 0"):
        attrs.evolve(snapshot, plan=((0, 1),)).check()


# ---------------------------------------------------------------------- drawn workflows


@st.composite
def workflows(draw):
    """Draw a workflow of up to twelve tasks, with files that several read, control edges and first files."""
    count = draw(st.integers(1, 12))
    names, tasks, edges = [f"f{i}" for i in range(count)], [], []
    for i in range(count):
        before = draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else []
        edges += [(parent, i) for parent in before]
        read = [names[parent] for parent in before if draw(st.integers(0, 3))]
        first = [draw(st.sampled_from(["g0", "g1"]))] if draw(st.booleans()) else []
        tasks.append(
            Task(
                id=i,
                run=draw(st.integers(0, 9)),
                cores=draw(st.integers(1, 3)),
                inputs=[*read, *first],
                outputs=[names[i]],
            )
        )
    files = [File(name, draw(st.sampled_from([0, 1, 3, 7]))) for name in (*names, "g0", "g1")]
    return Workflow(tasks, edges, files)


@settings(deadline=None)
@given(st.data(), workflows(), st.sampled_from([*ONLINE, "heft", "peft", "least-loaded"]))
def test_drawn_workflows_move_each_file_once_to_a_site(data, flow, broker):
    spec = sites("abc", cores=3, bandwidth=1.3, latency=0.7)
    found = simulate(spec, flow, broker)
    check_order(flow, found)
    begin = dict.fromkeys([file.name for file in flow.inputs], "a")
    assert (found.flows["bytes"].sum(), found.flows["files"].sum()) == moved(flow, found, begin)
    cut = data.draw(st.integers(0, 40)) + 0.37
    sim = start(spec, flow, broker).run(until=cut)
    if sim.system.unfinished:
        rows = {row["job"]: rounded(row) for row in found.jobs.rows()}
        again = simulate(Snapshot.from_json(sim.snapshot().to_json()))
        assert all(rounded(row) == rows[row["job"]] for row in again.jobs.rows())


@settings(deadline=None)
@given(st.data(), workflows(), st.sampled_from(["round-robin", "heft", "data-locality"]))
def test_nothing_of_a_workflow_is_lost_in_outages_and_little_room(data, flow, broker):
    at = data.draw(st.integers(0, 30))
    outage = SiteOutageSpec(site=data.draw(st.sampled_from("abc")), at=at, until=at + data.draw(st.integers(1, 20)))
    room = data.draw(st.sampled_from([20, 40, np.inf]))
    spec = sites(
        "abc", cores=3, bandwidth=1.3, latency=0.7, storage=StorageSpec(capacity=room), outages=[outage], retries=2
    )
    sim = start(spec, flow, broker).run()
    grid, found = sim.system, sim.result()
    assert set(found.jobs["state"].tolist()) <= {"finished", "failed", "cancelled"}
    assert not grid.planned
    assert not grid.stays.present
    assert not grid.data.fetches
    assert not grid.handed
    finished = dict(zip(found.jobs["job"].tolist(), (found.jobs["state"] == "finished").tolist(), strict=True))
    for task in flow:
        assert not finished[task.id] or all(finished[parent] for parent in flow.parents(task.id))
        for file in task.outputs if finished[task.id] else ():
            assert grid.data.catalogue.sites_of(file)  # no last replica goes
    for site in grid.places:
        assert site.storage.used <= site.storage.capacity
        assert not any(site.storage.pins(file) for file in site.storage.files)
