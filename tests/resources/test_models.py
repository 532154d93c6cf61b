"""Models of resources: how specs name them, their options, and what they refuse."""

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.platform import MemoryPoolSpec, StorageSpec, from_dict, read_toml, to_dict
from simmodel.platform.models import MODELS
from simmodel.resources import ManyCores, MemoryPool, Processor, Storage, make_storage, register_model
from simmodel.resources.models import Option, read_options
from simmodel.runs import simulate
from simmodel.systems.machine.system import Machine
from simmodel.testing import check_resource
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow
from tests.helpers.small_machines import small_machine

HERE = __name__


class Boost(Processor):
    """A processor with options."""

    takes = {"boost": Option(unit="s", above=0), "modes": Option(2, least=1, whole=True), "label": Option("")}  # noqa: RUF012


class Slow(Storage):
    """A storage of half the bandwidth."""

    def read_bandwidth(self, readers: int) -> float:
        """Return half of it."""
        return self.spec.read_bandwidth / 2


class Held(MemoryPool):
    """A pool that cannot be copied."""

    snapshots = False


class Counting(Processor):
    """A processor whose tasks take 1 s more each: it remembers their number, but not in snapshots."""

    done = 0

    def execute(self, task: Any, seconds: float) -> Any:
        """Run a task."""
        self.done += 1
        yield self.env.timeout(seconds + self.done)


@pytest.fixture
def names() -> Iterator[None]:
    """Forget the names that a test registers."""
    before = dict.fromkeys(MODELS)
    yield
    for name in [name for name in MODELS if name not in before]:
        del MODELS[name]


# ---------------------------------------------------------------------- how specs name models


def test_a_class_is_stored_as_module_and_class() -> None:
    machine = small_machine({"name": "gpu", "model": Boost, "options": {"boost": 3}})
    assert machine.processors[1].model == f"{HERE}:Boost"
    assert StorageSpec(model=Slow).model == f"{HERE}:Slow"
    assert MemoryPoolSpec(name="ram", model=Held).model == f"{HERE}:Held"
    assert from_dict(to_dict(machine)) == machine
    assert type(make_storage(Environment(), StorageSpec(model=Slow))) is Slow
    assert type(Machine(Environment(), machine).processors["gpu"]) is Boost


def test_a_class_that_documents_cannot_name_is_refused_unless_it_is_registered(names: None) -> None:
    class Local(Processor):
        """A class inside a function."""

    with pytest.raises(InputError, match=r"model: must be a class that .* imported, got .*Local: .* register_model"):
        small_machine({"name": "gpu", "model": Local})
    register_model("local", Local)
    machine = small_machine({"name": "gpu", "model": Local})
    assert machine.processors[1].model == "local"
    assert type(Machine(Environment(), machine).processors["gpu"]) is Local
    with pytest.raises(InputError, match="model: must be a class, a name or module:Class, got 3"):
        small_machine({"name": "gpu", "model": 3})


@pytest.mark.parametrize("part", ["processors", "pools"])
def test_files_name_classes_only_if_they_are_trusted(tmp_path: Any, part: str) -> None:
    path = tmp_path / "machine.toml"
    model = {"processors": Processor, "pools": MemoryPool}[part]
    pool = f'model = "{HERE}:Held"' if part == "pools" else ""
    processor = f'model = "{HERE}:Counting"' if part == "processors" else ""
    path.write_text(
        f'kind = "machine"\n[[pools]]\nname = "ram"\n{pool}\n[[architectures]]\nname = "any"\n'
        f'[[processors]]\nname = "core"\ntype = "CPU"\narchitecture = "any"\npool = "ram"\n{processor}\n'
    )
    with pytest.raises(InputError, match=rf"{part}\[0\].model: must be a known model, got '{HERE}:.*trust=True"):
        read_toml(path)
    machine = Machine(Environment(), read_toml(path, trust=True))
    found = (machine.home, machine.places[0])
    assert sum(type(each) not in (Processor, MemoryPool) and isinstance(each, model) for each in found) == 1


def test_names_are_those_of_one_registry(names: None) -> None:
    register_model("boost", Boost)
    with pytest.raises(InputError, match=r"model of storage s: unknown model 'boots'; known models: .*disk"):
        make_storage(Environment(), StorageSpec(name="s", model="boots"))
    with pytest.raises(InputError, match=r"model of storage s: must be a subclass of Storage, got <class '.*Boost'>"):
        make_storage(Environment(), StorageSpec(name="s", model="boost"))
    with pytest.raises(InputError, match=r"model 'x': must be a subclass of one of Processor, Mem"):
        register_model("x", int)


# ---------------------------------------------------------------------- what models refuse


def test_a_processor_of_one_task_at_a_time_is_refused_with_several_cores() -> None:
    wrong = small_machine({"name": "gpu", "model": Counting, "cores": 4})
    with pytest.raises(InputError, match=r"Counting runs one task at a time: cores must be 1, got 4"):
        Machine(Environment(), wrong)
    several = small_machine({"name": "gpu", "model": "simmodel.resources.processors.serving:ManyCores", "cores": 4})
    tasks = Workflow([Task(id=i, run=10, implementations=("GPU",)) for i in range(8)])
    assert simulate(several, tasks, "hrr").tasks["end"].max() == 20


def test_a_model_that_is_a_class_runs() -> None:
    tasks = Workflow([Task(id=i, run=10, implementations=("GPU",)) for i in range(2)])
    result = simulate(small_machine({"name": "gpu", "model": Counting}), tasks, "hrr")
    assert result.tasks["end"].tolist() == [11.0, 23.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "options of gpu: missing boost (s)"),
        ({"boost": 0}, "options of gpu: boost: must be > 0, got 0"),
        ({"boost": 1, "modes": 1.5}, "options of gpu: modes: must be a whole number >= 1, got 1.5"),
        ({"boost": 1, "modes": True}, "options of gpu: modes: must be a whole number >= 1, got True"),
        ({"boost": 1, "mode": 1}, "options of gpu: unknown option 'mode'; did you mean 'modes'?"),
        ({"boost": "soon"}, "options of gpu: boost: "),
    ],
)
def test_wrong_options_are_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_options(Boost, given, "options of gpu")
    assert str(caught.value).startswith(message)


def test_options_have_defaults_and_units() -> None:
    found = read_options(Boost, {"boost": "2min", "label": "b"}, "")
    assert dict(found) == {"boost": 120.0, "modes": 2, "label": "b"}


def test_options_without_a_model_are_refused() -> None:
    with pytest.raises(InputError, match=r"options of processor gpu: must be empty without a model, got"):
        Machine(Environment(), small_machine({"name": "gpu", "options": {"boost": 3}}))


def test_a_model_without_snapshots_is_not_copied() -> None:
    spec = small_machine({"name": "gpu"})
    pools = (MemoryPoolSpec(name="n0", model=Held), MemoryPoolSpec(name="gpu"))
    held = Machine(Environment(), attrs.evolve(spec, pools=pools))
    with pytest.raises(SnapshotError, match="n0 cannot be copied: Held has snapshots = False"):
        held.snapshot()


# ---------------------------------------------------------------------- the check


@pytest.mark.few(3)
@pytest.mark.parametrize("model", [Processor, ManyCores, MemoryPool, Held])
def test_right_models_pass(model: type) -> None:
    check_resource(model)
