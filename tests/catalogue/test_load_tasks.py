"""Machine workloads by text, bundled name or file, and the errors for invalid ones."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.catalogue import load_platform, load_tasks, load_workload
from simmodel.catalogue.bundled import bundled_file
from simmodel.catalogue.tasks import make_work, task_names
from simmodel.formats.daggen import write_daggen
from simmodel.formats.hetsim_config import HetSimConfig
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.generators.layers import layered, with_costs
from simmodel.generators.task_kinds import TASK_KINDS
from simmodel.runs.scenario import simulate
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow
from tests.helpers.data_files import data_file

# name: generator, tasks, data objects
READY = {
    "daggen-100": ("daggen", 100, 185),
    "database-10k": ("database", 10_000, 10_001),
    "fork-join": ("tasks", 6, 8),
    "fork-join-dressed": ("dressed", 6, 23),
    "graphs-over-time": ("layered", 480, None),
    "layered-100": ("layered", 100, None),
    "mixed-1000": ("mixture", 1000, None),
    "random-families": ("random", 500, None),
}


def sets(work) -> list[TaskSet]:
    return [TaskSet.of(each) for _, each in work] if isinstance(work, list) else [TaskSet.of(work)]


def drawn(work) -> list:
    return [
        (list(map(repr, each.run)), list(each.sizes), each.flop, each.parents, each.implementations, each.submit)
        for each in sets(work)
    ]


# ---------------------------------------------------------------------- bundled works


def test_every_ready_work_and_every_kind_is_tested() -> None:
    assert task_names() == sorted(READY)
    assert {kind for kind, *_ in READY.values()} == set(TASK_KINDS)


@pytest.mark.parametrize("name", READY)
def test_ready_works_have_their_sizes_and_repeat(name) -> None:
    kind, tasks, objects = READY[name]
    work = load_tasks(name)
    assert sum(len(each) for each in sets(work)) == tasks
    assert objects is None or sum(len(each.sizes) for each in sets(work)) == objects
    assert {each.name for each in sets(work)} == {name}
    assert drawn(load_tasks(name)) == drawn(work)
    assert kind in ("tasks",) or drawn(load_tasks(name, seed=9)) != drawn(work)
    for key in ("description = ", "source = "):
        assert key in bundled_file("workloads", name).read_text()
    with pytest.raises(InputError, match="generates tasks for a machine, not jobs"):
        load_workload(name)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("machine", "name"),
    [
        pytest.param(machine, name, marks=[pytest.mark.long] if (machine, name) == ("a100x4", "database-10k") else [])
        for machine in ("hetsim-slow-setup", "a100x4")
        for name in READY
    ],
)
def test_ready_works_run_on_machines(name, machine) -> None:
    if name == "daggen-100" and machine == "hetsim-slow-setup":
        with pytest.raises(ImpossibleWork, match="no run time is known on any suitable processor"):
            simulate(machine, name)
        return
    result = simulate(machine, name, "earliest-finish")
    assert (result.tasks["status"] == "done").all()
    assert len(result.tasks["task"]) == READY[name][1]


def test_figures_of_ready_works() -> None:
    work = load_tasks("random-families")
    assert sum("GPU" not in kinds for kinds in dict(zip(work.families, work.implementations, strict=True)).values()) > 0
    assert len(work.reconfiguration) == 8
    assert (work.submit[0], max(np.diff(work.submit)) <= 60) == (0, True)
    pairs = load_tasks("graphs-over-time")
    assert len(pairs) == 12
    assert len({tuple(each.run) for _, each in pairs}) == 12
    mixed = load_tasks("mixed-1000")
    assert sum(family in ("query", "gather") for family in mixed.families) == 700
    flow = load_tasks("fork-join")
    assert flow["join"].implementations == ("CPUCore", "GPU")
    assert flow.critical_path() == ("split", "edges-1", "join")


# ---------------------------------------------------------------------- texts


def test_texts_of_generators_draw_tasks_as_they_say() -> None:
    work = load_tasks("random: tasks = 1e3, families=4 ,run=10-20,objects=1..2,size=4MB-0.3GB,partial=0.5", seed=3)
    assert (len(work), {*work.families}) == (1000, {f"family{i}" for i in range(4)})
    assert (min(work.run) >= 10, max(work.run) <= 20) == (True, True)
    assert (min(work.sizes) >= 4e6, 250e6 < max(work.sizes) <= 300e6) == (True, True)
    assert {len(found) for found in work.inputs} == {1, 2}
    assert drawn(work) == drawn(
        load_tasks("random:size=4MB..300MB,objects=1-2,run=10..20,families=4,tasks=1000,partial=.5", 3)
    )
    assert load_tasks("random:run=1e-3").run[0] == 0.001
    assert len(load_tasks("random")) == len(load_tasks("random:")) == 100
    assert len(load_tasks("database:tasks=500")) == 500
    assert isinstance(load_tasks("daggen:n=20,ccr=3"), Workflow)
    assert load_tasks("daggen:n=20", seed=5).edges != load_tasks("daggen:n=20", seed=6).edges
    fat, thin = (len(load_tasks(f"layered:n=40,regular=1,fat={fat}").workflow().levels) for fat in (1, 0))
    assert (fat, thin) == (1, 40)
    assert load_tasks("random:tasks=5,max_delay=3,start=7").submit[0] == 7
    assert {*load_tasks("random:types=GPU+FPGA").implementations} == {("GPU", "FPGA")}
    assert [len(each) for _, each in load_tasks("dressed:workflow=fork-join,copies=3,gap=5")] == [6, 6, 6]
    assert [at for at, _ in load_tasks("dressed:workflow=fork-join,copies=3,gap=5")] == [5, 10, 15]


def test_files_of_workflows_and_settings_are_tasks(tmp_path) -> None:
    rng = np.random.default_rng(0)
    flow = layered(20, rng=rng)
    write_daggen(flow, tmp_path / "graph.dot")
    assert (
        len(load_tasks(tmp_path / "graph.dot")) == len(load_tasks(str(tmp_path / "graph.dot"), format="daggen")) == 20
    )
    dressed = load_tasks(f"dressed:workflow={tmp_path}/graph.dot,run=5")
    assert {*TaskSet.of(dressed).run} == {5}
    (tmp_path / "mine.toml").write_text('generator = "dressed"\n[parameters]\nworkflow = "graph.dot"\nrate = 2\n')
    beside = load_tasks(tmp_path / "mine.toml")
    assert (len(beside), beside.name, len(beside.submit)) == (20, "mine", 20)
    with pytest.raises(InputError, match=r"unknown option of the reader: .*repair"):
        load_tasks(tmp_path / "graph.dot", repair=True)


def test_a_workflow_of_pegasus_dressed() -> None:
    path = data_file("dax/Sipht_30.xml.gz")
    work = load_tasks(f"dressed:workflow={path}", seed=1)
    assert (len(work), len(work.edges)) == (29, 33)
    assert sorted(task.family for task in work) == sorted(task.family for task in load_tasks(path))
    assert work.files != with_costs(load_tasks(path), rng=np.random.default_rng(1)).files  # an independent stream


def test_settings_in_python() -> None:
    tasks = [
        {"run": "2h", "outputs": ["a"], "family": "f"},
        {"id": "two", "run_on": {"gpu": 3}, "inputs": ["a"], "cores": 2, "memory": "1GB", "priority": 4, "submit": 5},
    ]
    work = make_work({"generator": "tasks", "parameters": {"tasks": tasks, "data": {"a": "5MB"}, "reconfiguration": 9}})
    assert list(work.ids) == [0, "two"]
    assert (work.run[0], math.isnan(work.run[1]), work.run_on[1]) == (7200, True, {"gpu": 3})
    assert (work.parents, work.sizes, work.submit) == ([(), (0,)], [5e6], [0, 5])
    assert (work.cores[1], work.memory[1], work.priority[1], work.reconfiguration) == (2, 1e9, 4, {"f": 9})
    parts = [{"work": "fork-join"}, {"work": "random:tasks=4"}]
    whole = make_work({"generator": "mixture", "seed": 2, "parameters": {"parts": parts, "order": "blocks"}})
    assert list(whole.ids)[:1] + list(whole.ids)[6:] == ["split", 0, 1, 2, 3]
    assert drawn(make_work({"generator": "random"}, seed=0)) == drawn(load_tasks("random"))


# ---------------------------------------------------------------------- HetSim's configuration


def test_a_configuration_gives_what_the_text_does_not_say() -> None:
    config = HetSimConfig(min_task_runtime=1, max_task_runtime=2, min_data_objects=2, max_data_objects=2,
                          min_data_size=5, max_data_size=6, max_task_delay=3)  # fmt: skip
    for text in ("random:tasks=50", "layered:n=30", "dressed:workflow=fork-join"):
        work = TaskSet.of(load_tasks(text, config=config))
        assert all(1 <= seconds <= 2 for seconds in work.run)
        assert all(5e6 <= size <= 6e6 for size in work.sizes)
        assert {len(found) % 2 for found in work.inputs} == {0}
        assert (work.submit[0], max(np.diff(work.submit)) <= 3, max(work.submit) > 3) == (0, True, True)
    said = load_tasks("random:tasks=50,run=7,rate=1", config=config)
    assert ({*said.run}, said.submit[0] > 0) == ({7}, True)
    with pytest.raises(InputError, match="partial: cannot apply to tasks without families"):
        load_tasks("random", config=HetSimConfig(partial_task_families=True))
    some = load_tasks("random:families=30", config=HetSimConfig(partial_task_families=True))
    assert len({*some.implementations}) == 4
    graph = load_tasks("fork-join", config=config)
    assert (graph.run[0], len(graph.submit)) == (40, 6)  # listed, so run times are not drawn; arrivals are


@pytest.mark.parametrize("text", ["random:tasks=20,objects=1-5,families=3,rate=1", "layered:n=20", "database:tasks=20"])
def test_seeds_of_a_configuration(text) -> None:
    base = load_tasks(text, 1, config=HetSimConfig(seed_uniform=1, seed_task_runtime=2, seed_data_size=3))
    again = load_tasks(text, 99, config=HetSimConfig(seed_uniform=1, seed_task_runtime=2, seed_data_size=3))
    assert drawn(again) == drawn(base)
    times = load_tasks(text, 1, config=HetSimConfig(seed_uniform=1, seed_task_runtime=9, seed_data_size=3))
    assert (times.inputs, times.sizes, times.families) == (base.inputs, base.sizes, base.families)
    assert times.run != base.run


def test_without_strict_exceptions_what_cannot_run_is_left_out() -> None:
    machine = load_platform("multicore-2x10")  # has no GPU
    text = "random:tasks=40,families=8,types=GPU+CPU,partial=0.5"
    strict = load_tasks(text, config=HetSimConfig(strict_exceptions=True), machine=machine)
    assert len(strict) == 40
    gpu = "random:tasks=40,families=8,types=GPU"
    work = load_tasks(gpu, config=HetSimConfig(strict_exceptions=False), machine=machine)
    assert (len(work), work.report.rejected) == (0, {"task that no processor can run": 40})
    with pytest.raises(ImpossibleWork):
        simulate(machine, load_tasks(gpu))
    pairs = load_tasks(f"{gpu},copies=2,rate=1", config=HetSimConfig(strict_exceptions=False), machine=machine)
    assert [len(each) for _, each in pairs] == [0, 0]


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "randon:tasks=5",
            "unknown task generator 'randon'; did you mean 'random'? Known task generators: random, database,",
        ),
        ("random:task=5", "random:task=5, task: unknown key 'task'; did you mean 'tasks'?"),
        ("random:tasks", "random:tasks: must be key=value, got 'tasks'"),
        ("random:tasks=", "must be key=value, got 'tasks='"),
        ("random:,", "must be key=value, got ''"),
        ("random:tasks=5,tasks=6", "duplicate key 'tasks'"),
        ("random:tasks=0", "random:tasks=0, tasks: must be a whole number >= 1, got 0"),
        ("random:tasks=many", "tasks: must be a whole number >= 1, got 'many'"),
        ("random:tasks=1-2", r"tasks: must be a whole number >= 1, got (1, 2)"),
        ("random:tasks=99999999999999999999", "tasks: must be at most 10,000,000 (limit count), got 1e+20"),
        ("random:run=soon", "run: must be a quantity in s such as '11.5ms', got 'soon'"),
        ("random:run=-5", "run: must be a finite quantity in s >= 0, got -5"),
        ("random:run=5GB", "run: must be a quantity in s such as '11.5ms', got '5GB'"),
        ("random:run=true", "run: must be a quantity in s"),
        ("random:families=0", "families: must be a whole number >= 1, got 0"),
        ("random:partial=2,families=3", "partial: must be a share from 0 to 1, got 2"),
        ("random:rate=1,gap=2", "must have exactly one of rate, gap and max_delay, got rate and gap"),
        ("random:start=2", "must have exactly one of rate, gap and max_delay, got none"),
        ("random:copies=2", "must have exactly one of rate, gap and max_delay, got none"),
        ("layered:n=10,fat=3", "layered:n=10,fat=3: fat: must be a number from 0 to 1, got 3"),
        ("layered:n=x", "layered:n=x"),
        ("daggen:n=10,run=5", "run: unknown key 'run'"),
        ("dressed", "dressed: missing 'workflow'"),
        ("dressed:workflow=5", "workflow: must be a bundled name or a file, got 5"),
        ("dressed:workflow=no.xml", "no.xml: no such file"),
        ("dressed:workflow=graphs-over-time", "must be one workflow, got several over time"),
        ("mixture:tasks=5", "parts: must be a non-empty list of parts with works"),
        ("tasks", "tasks: missing 'tasks'"),
        ("fork-jion", "unknown machine workload 'fork-jion'; did you mean 'fork-join'? Known machine workloads: "),
        ("missing.xml", "missing.xml: no such file"),
        ("lublin-256", "generator: 'lublin' generates jobs for a cluster, not tasks"),
    ],
)
def test_wrong_texts_get_one_sentence(text, said) -> None:
    with pytest.raises(InputError) as caught:
        load_tasks(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


GOOD = {"id": 1, "run": 5}


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        ("tasks", {"tasks": []}, "my.toml, tasks: must not be empty"),
        ("tasks", {"tasks": [5]}, "my.toml, tasks[0]: must be a table, got 5"),
        ("tasks", {"tasks": [GOOD, GOOD]}, "my.toml: duplicate task id 1"),
        ("tasks", {"tasks": [{**GOOD, "runs": 1}]}, "tasks[0].runs: unknown key 'runs'; did you mean 'run'?"),
        (
            "tasks",
            {"tasks": [{**GOOD, "run": -1}]},
            "tasks[0].run: must be a finite quantity in s >= 0, got",
        ),
        ("tasks", {"tasks": [{**GOOD, "memory": "5s"}]}, "tasks[0].memory: must be a quantity in B"),
        ("tasks", {"tasks": [{**GOOD, "cores": 0}]}, "tasks[0]: cores of 1: must be a finite number > 0, got 0"),
        ("tasks", {"tasks": [{**GOOD, "id": 1.5}]}, "tasks[0].id: must be text or a whole number, got 1.5"),
        ("tasks", {"tasks": [{**GOOD, "run_on": 5}]}, "tasks[0].run_on: must be a table, got 5"),
        ("tasks", {"tasks": [{**GOOD, "run_on": {"gpu": -5}}]}, "tasks[0].run_on.gpu: must be a finite quantity in s"),
        (
            "tasks",
            {"tasks": [{**GOOD, "inputs": ["x"]}]},
            "my.toml: task 1 reads unknown data object 'x'",
        ),
        (
            "tasks",
            {"tasks": [GOOD], "data": {"x": -1}},
            "data.x: must be a finite quantity in B >= 0, got -1",
        ),
        ("tasks", {"tasks": [GOOD], "edges": [[1, 2]]}, "my.toml: edge from 1 to 2: unknown task 2"),
        ("tasks", {"tasks": [GOOD], "edges": [[1, 1]]}, "my.toml: tasks form a cycle: 1 -> 1"),
        ("tasks", {"tasks": [GOOD], "edges": [[1]]}, "edges[0]: must be [parent, child] or [parent, child, bytes]"),
        ("tasks", {"tasks": [GOOD], "edges": [[1, 1, "x"]]}, "edges[0]: must be a quantity in B"),
        ("mixture", {"parts": "fork-join"}, "parts: must be a non-empty list of parts"),
        ("mixture", {"parts": [{}]}, "parts[0]: missing key 'work' (text)"),
        (
            "mixture",
            {"parts": [{"work": "random", "share": 1}]},
            "parts[0].share: unknown key 'share'; known keys: work;",
        ),
        ("mixture", {"tasks": 5, "parts": [{"work": "random"}]}, "parts[0]: missing key 'share'"),
        (
            "mixture",
            {"tasks": 5, "parts": [{"work": "random", "share": 0}]},
            "parts[0].share: must be a share > 0",
        ),
        (
            "mixture",
            {"tasks": 5, "parts": [{"work": "fork-join", "share": 1}]},
            "parts[0].work: must be one of random,",
        ),
        (
            "mixture",
            {"tasks": 5, "parts": [{"work": "random:x=1", "share": 1}]},
            "random:x=1,tasks=5, x: unknown key 'x'",
        ),
        ("mixture", {"parts": [{"work": "random:copies=2,rate=1"}]}, "parts[0].work: must be one work, got several"),
        ("mixture", {"parts": [{"work": "random"}], "order": "x"}, "order: must be 'shuffled' or 'blocks', got 'x'"),
        ("random", {"copy": 1}, "copy: unknown key 'copy'; did you mean 'copies'?"),
        ("random", 5, "parameters: must be a table, got 5"),
        ("random", {"run": {"distribution": "gama", "mean": 1}}, "run: unknown distribution 'gama'"),
        ("random", {"run": {"distribution": "gamma", "men": 1}}, "run: distribution gamma: "),
        (
            "nothing",
            {},
            "generator: unknown task generator 'nothing'; known task generators: random, database, layered",
        ),
    ],
)
def test_wrong_settings_get_one_sentence(kind, parameters, said) -> None:
    with pytest.raises(InputError) as caught:
        make_work({"generator": kind, "parameters": parameters}, source="my.toml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("generator = \n", "x.toml, line 1: invalid TOML"),
        ("colour = 1\n", "x.toml, colour: unknown key 'colour'"),
        ("description = 'x'\n", "x.toml: missing key 'generator'"),
        ("generator = 'random'\nseed = -1\n", "x.toml, seed: must be a whole number >= 0, got -1"),
        ("generator = 'random'\nseed = 1.5\n", "x.toml, seed: must be a whole number >= 0, got 1.5"),
    ],
)
def test_wrong_files_get_one_sentence(text, said, tmp_path) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_tasks(tmp_path / "x.toml")
    assert said in str(caught.value)


def test_a_work_that_is_part_of_itself(tmp_path) -> None:
    path = tmp_path / "loop.toml"
    path.write_text(f"generator = 'mixture'\n[[parameters.parts]]\nwork = '{path}'\n")
    with pytest.raises(InputError, match=r"work must not contain itself, got .*loop.toml -> .*loop.toml"):
        load_tasks(path)


@given(
    st.text("randomlayeredtsk:=,.-+1259eGMB ", max_size=30)
    | st.lists(
        st.sampled_from(
            ["tasks", "n", "run", "families", "objects", "size", "rate", "copies", "partial", "types", "fat"]
        ).flatmap(
            lambda key: st.sampled_from(["1", "0.5", "2-3", "x", "1e1", "-1", "4MB-5MB", "GPU+FPGA"]).map(
                f"{key}={{}}".format
            )
        ),
        max_size=4,
    ).map(lambda parts: f"random:{','.join(parts)}")
)
def test_texts_are_read_or_refused(text) -> None:
    with suppress(InputError):
        assert sets(load_tasks(text))
