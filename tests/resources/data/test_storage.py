"""Storages: room, claims in order, pins, last replicas and snapshots; and the catalogue that they keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, Stalled
from simmodel.platform.storage import StorageSpec
from simmodel.resources.data.catalogue import Catalogue, CatalogueState
from simmodel.resources.data.storage import Storage, StorageState, make_storage, register_storage
from simmodel.resources.network.shared_channel import SharedChannel
from simmodel.snapshots.codec import read_state, write_fields
from tests.helpers.examples import up_to


@attrs.frozen
class Both:
    """A storage and its catalogue, as fields of a snapshot."""

    storage: StorageState
    catalogue: CatalogueState


CAPACITY = 20
FILES = [f"f{i}" for i in range(12)]


class Watch:
    """Count bytes that come and go, and keep the causes."""

    def __init__(self) -> None:
        self.bytes: dict[str, float] = {}
        self.causes: list[tuple[str, str]] = []

    def file_added(self, storage: Storage, file: str, size: float, cause: str) -> None:
        self.bytes[storage.name] = self.bytes.get(storage.name, 0) + size
        self.causes.append((file, cause))

    def file_dropped(self, storage: Storage, file: str, size: float, cause: str) -> None:
        self.bytes[storage.name] -= size
        self.causes.append((file, cause))


class Sites(RuleBasedStateMachine):
    """Two storages of limited size and one without a limit, and everything that happens to them."""

    def __init__(self) -> None:
        super().__init__()
        self.env = Environment()
        self.watch = Watch()
        self.env.observe(self.watch)
        self.asked: dict[str, list[str]] = {}
        self.granted: dict[str, list[str]] = {}
        self.pins: dict[tuple[str, str], int] = {}

    @initialize(
        evict=st.sampled_from(["lru", "lfu", "size", "fifo", "none"]),
        sizes=st.lists(st.integers(0, 12), min_size=len(FILES), max_size=len(FILES)),
    )
    def build(self, evict: str, sizes: list[int]) -> None:
        self.sizes = dict(zip(FILES, sizes, strict=True))
        self.catalogue = Catalogue(["a", "b", "tape"])
        limited = StorageSpec(capacity=CAPACITY, evict=evict)
        self.storages = {
            "a": Storage(self.env, limited, self.catalogue, name="a"),
            "b": Storage(self.env, limited, self.catalogue, name="b"),
            "tape": Storage(self.env, StorageSpec(), self.catalogue, name="tape"),
        }
        self.asked = {name: [] for name in self.storages}
        self.granted = {name: [] for name in self.storages}

    @rule(where=st.sampled_from(["a", "b", "tape"]), file=st.sampled_from(FILES))
    def reserve(self, where: str, file: str) -> None:
        storage = self.storages[where]

        def call() -> None:
            self.granted[where].append(file)

        if file in storage.files or storage.expects(file):
            with pytest.raises(InputError, match="already"):
                storage.reserve(file, self.sizes[file], call)
            return
        self.asked[where].append(file)
        storage.reserve(file, self.sizes[file], call)

    @rule(where=st.sampled_from(["a", "b", "tape"]), which=st.integers(0, 20), pins=st.integers(0, 2))
    def arrive(self, where: str, which: int, pins: int) -> None:
        storage = self.storages[where]
        ready = [file for file in self.granted[where] if file not in storage.files and storage.expects(file)]
        if ready:
            file = ready[which % len(ready)]
            self.pins[where, file] = self.pins.get((where, file), 0) + pins
            storage.add(file, self.sizes[file], "transfer", pins=pins)
            self.granted[where].remove(file)
            self.asked[where].remove(file)

    @rule(where=st.sampled_from(["a", "b", "tape"]), which=st.integers(0, 20))
    def give_up(self, where: str, which: int) -> None:
        storage = self.storages[where]
        if self.asked[where]:
            file = self.asked[where][which % len(self.asked[where])]
            self.asked[where].remove(file)
            if file in self.granted[where]:
                self.granted[where].remove(file)
            storage.release(file)

    @rule(where=st.sampled_from(["a", "b", "tape"]), which=st.integers(0, 20), pin=st.booleans())
    def use(self, where: str, which: int, pin: bool) -> None:
        storage = self.storages[where]
        found = list(storage.files) if pin else [file for file in storage.files if storage.pins(file)]
        if found:
            file = found[which % len(found)]
            self.pins[where, file] = self.pins.get((where, file), 0) + (1 if pin else -1)
            (storage.pin if pin else storage.unpin)(file)

    @rule(where=st.sampled_from(["a", "b", "tape"]), which=st.integers(0, 20))
    def drop(self, where: str, which: int) -> None:
        storage = self.storages[where]
        if storage.files:
            file = list(storage.files)[which % len(storage.files)]
            if storage.why_keep(file) is None:
                storage.drop(file)
            else:
                with pytest.raises(InputError):
                    storage.drop(file)
                assert file in storage.files

    @precondition(lambda self: hasattr(self, "storages"))
    @rule(where=st.sampled_from(["a", "b"]))
    def cut(self, where: str) -> None:
        """Continue with a copy of a storage."""
        storage = self.storages[where]
        state = storage.state()
        both = Both(state, self.catalogue.state())
        assert read_state(json.loads(json.dumps(write_fields(both))), Both) == both
        self.storages[where] = copy = Storage(self.env, storage.spec, self.catalogue, name=where)
        calls = {file: (lambda file=file: self.granted[where].append(file)) for file in self.asked[where]}
        copy.restore(state, calls)
        assert copy.state() == state
        assert copy.used == storage.used

    @invariant()
    def what_must_hold(self) -> None:
        if not hasattr(self, "storages"):
            return
        seen = set()
        for name, storage in self.storages.items():
            waiting = [room.file for room in storage.rooms() if room.since is not None]
            reserved = [room.file for room in storage.rooms() if room.since is None]
            assert storage.used == sum(self.sizes[file] for file in [*storage.files, *reserved]) <= storage.capacity
            assert self.watch.bytes.get(name, 0) == sum(storage.files.values()) == self.catalogue.bytes_at(name)
            assert self.catalogue.files_at(name) == len(storage.files)
            assert waiting == [file for file in self.asked[name] if file not in self.granted[name]], "in order"
            assert reserved == self.granted[name]
            for (where, file), pins in self.pins.items():
                assert where != name or storage.pins(file) == pins
                assert where != name or not pins or file in storage.files, "a file in use stays"
            for file in storage.files:
                assert self.catalogue.holds(file, name)
                seen.add(file)
            if waiting:
                self.check_head(storage, waiting[0])
        for file in FILES:
            held = tuple(name for name, storage in self.storages.items() if file in storage.files)
            assert (self.catalogue.sites_of(file) if file in self.catalogue else ()) == held
        arrived = {file for file, cause in self.watch.causes if cause == "transfer"}
        assert arrived == seen, "no file is lost"

    def check_head(self, storage: Storage, file: str) -> None:
        """Check that the first in line waits for good reason."""
        may_go = sum(size for name, size in storage.files.items() if storage.why_keep(name) is None)
        may_go = 0 if storage.spec.evict == "none" else may_go
        assert storage.free + may_go < self.sizes[file]


Sites.TestCase.settings = settings(max_examples=up_to(60), stateful_step_count=40, deadline=None)
test_what_must_hold_of_storages = Sites.TestCase


def storage_of(capacity: float = 100.0, **options: Any) -> Storage:
    return Storage(Environment(), StorageSpec(name="disk", capacity=capacity, **options))


def test_claims_are_served_in_order_and_a_small_one_does_not_overtake() -> None:
    storage = storage_of()
    told: list[str] = []
    storage.add("a", 60, pins=1)
    storage.reserve("b", 50, lambda: told.append("b"))
    storage.reserve("c", 10, lambda: told.append("c"))
    assert told == []
    assert storage.waiting == 2
    storage.unpin("a")
    assert told == ["b", "c"]
    assert (list(storage.files), storage.used) == ([], 60)


def test_a_model_may_let_claims_overtake_and_decide_when_files_come_in() -> None:
    class Busy(Storage):
        overtaking = True
        closed = True

        def admit(self, file: str, size: float) -> bool:
            return not self.closed or file == "small"

    register_storage("busy", Busy)
    storage = make_storage(Environment(), StorageSpec(capacity=100, model="busy"), name="disk")
    assert isinstance(storage, Busy)
    told: list[str] = []
    for file, size in (("large", 80), ("other", 30), ("small", 10)):
        storage.reserve(file, size, lambda file=file: told.append(file))  # type: ignore[misc]
    assert told == ["small"]
    storage.closed = False
    storage.look_again()
    assert told == ["small", "large"]


def test_nothing_goes_unless_enough_can() -> None:
    storage = storage_of()
    storage.add("used", 60, pins=1)
    storage.add("loose", 30)
    told: list[str] = []
    storage.reserve("new", 50, lambda: told.append("new"))
    assert list(storage.files) == ["used", "loose"]
    storage.release("new")
    storage.reserve("new", 40, lambda: told.append("new"))
    assert (list(storage.files), told) == (["used"], ["new"])


def test_the_last_replica_stays_until_there_is_another() -> None:
    env = Environment()
    watch = Watch()
    env.observe(watch)
    catalogue = Catalogue(["a", "b"])
    a, b = (Storage(env, StorageSpec(capacity=100), catalogue, name=name) for name in ("a", "b"))
    told: list[str] = []
    a.add("x", 70)
    a.reserve("y", 50, lambda: told.append("y"))
    assert a.why_keep("x") == "file x has its last replica at storage a"
    assert told == []
    b.add("x", 70, "copy")
    assert (told, list(a.files)) == (["y"], [])
    assert catalogue.sites_of("x") == ("b",)
    assert watch.causes == [("x", "given"), ("x", "evicted"), ("x", "copy")]
    with pytest.raises(InputError, match="file x has its last replica at storage b"):
        b.drop("x")
    b.drop("x", "site lost", last=True)
    assert catalogue.sites_of("x") == ()


def test_a_rule_may_let_last_replicas_go_and_observers_are_told() -> None:
    env = Environment()
    watch = Watch()
    env.observe(watch)
    storage = Storage(env, StorageSpec(capacity=100, evict="lru(last=true)"), Catalogue(["a"]), name="a")
    storage.add("x", 70)
    storage.add("y", 50)
    assert watch.causes == [("x", "given"), ("x", "last replica evicted"), ("y", "given")]


def test_callbacks_may_use_the_storage() -> None:
    storage = storage_of()
    told: list[str] = []

    def comes(file: str, size: float) -> None:
        told.append(file)
        storage.add(file, size)

    storage.add("a", 100, pins=1)
    for file in ("b", "c", "d"):
        storage.reserve(file, 60, lambda file=file: comes(file, 60))  # type: ignore[misc]
    storage.unpin("a")
    assert told == ["b", "c", "d"]
    assert list(storage.files) == ["d"]


def test_pins_from_the_beginning_are_uses() -> None:
    storage = storage_of(evict="lfu")
    storage.add("a", 40, pins=2)
    storage.add("b", 40, pins=1)
    for file in ("a", "a", "b"):
        storage.unpin(file)
    storage.add("c", 40)
    assert list(storage.files) == ["a", "c"]


def test_files_of_broken_bytes_take_whole_ones() -> None:
    storage = storage_of(3)
    storage.add("a", 1.5)
    storage.add("b", 0.5)
    assert (storage.used, storage.free) == (3, 0)
    storage.drop("a")
    assert storage.used == 1


def test_who_waits_for_room_is_reported() -> None:
    storage = storage_of()
    storage.add("a", 60, pins=1)
    storage.reserve("b", 50, lambda: None)
    with pytest.raises(Stalled) as error:
        storage.env.run()
    assert "file b waits for 50 bytes in storage disk since 0: 40 of 100 free, 1 of 1 files used" in str(error.value)


def test_reads_and_writes_have_bandwidths_of_their_own() -> None:
    storage = storage_of(read_bandwidth=10, write_bandwidth="5Bps")
    ends: dict[str, float] = {}
    storage.read(40, lambda _: ends.update(first=storage.env.now))
    storage.read(40, lambda _: ends.update(second=storage.env.now))
    storage.write(20, lambda _: ends.update(written=storage.env.now), about="x")
    storage.env.run()
    assert ends == {"written": 4.0, "first": 8.0, "second": 8.0}
    assert isinstance(storage.writing, SharedChannel)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda s: s.reserve("b", 200, print), "file b of 200 bytes is larger than storage disk of 100 bytes"),
        (lambda s: s.reserve("b", -1, print), "file 'b', size: must be finite and >= 0, got -1"),
        (lambda s: s.reserve("a", 10, print), "file a is in storage disk already, or on its way"),
        (lambda s: s.add("a", 10), "file a is in storage disk already"),
        (lambda s: s.add("b", 95), "no room for file b of 95 bytes in storage disk"),
        (lambda s: s.add("c", 9), "file c has 9 bytes, but 10 are reserved in disk"),
        (lambda s: s.release("b"), "no room is reserved for file b in storage disk"),
        (lambda s: s.pin("b"), "file b is not in storage disk"),
        (lambda s: s.unpin("b"), "file b is not in use at storage disk"),
        (lambda s: s.drop("b"), "file b is not in storage disk"),
        (lambda s: s.drop("a"), "file a is in use at storage disk"),
        (lambda s: s.drop("a", last=True), "file a is in use at storage disk"),
        (lambda s: make_storage(s.env, StorageSpec(model="disc")), "model of storage : unknown model 'disc'"),
        (lambda s: register_storage("x", int), "model 'x': must be a subclass of Storage, got <class 'int'>"),  # type: ignore[arg-type]
    ],
)
def test_wrong_calls_change_nothing(do: Callable[[Storage], Any], message: str) -> None:
    storage = storage_of()
    storage.add("a", 60, pins=1)
    storage.reserve("c", 10, lambda: None)
    before = storage.state()
    with pytest.raises(InputError) as error:
        do(storage)
    assert str(error.value).startswith(message)
    assert storage.state() == before


# ---------------------------------------------------------------------- the catalogue


def test_a_catalogue_of_columns_answers_and_is_copied() -> None:
    catalogue = Catalogue.from_columns(
        ["a", "b", "c"], ["x", "y", "x", "z", "x"], [4.5, 1, 4.5, 2, 4.5], ["c", "a", "a", None, "a"]
    )
    assert [catalogue.sites_of(file) for file in "xyz"] == [("a", "c"), ("a",), ()]
    assert [catalogue.bytes_at(site) for site in "abc"] == [6, 0, 5]
    assert [catalogue.files_at(site) for site in "abc"] == [2, 0, 1]
    assert (catalogue.may_drop("x"), catalogue.may_drop("y")) == (True, False)
    assert repr(catalogue) == "<Catalogue: 3 files, 3 replicas at 3 sites>"
    state = catalogue.state()
    copy = Catalogue(["a", "b", "c"])
    copy.restore(state)
    assert copy.state() == state
    copy.remove("x", "c")
    assert (copy.bytes_at("c"), copy.sites_of("x")) == (0, ("a",))
    assert catalogue.state() == state


@pytest.mark.parametrize("first", ["catalogue", "storage"])
def test_a_catalogue_and_its_storages_come_back_in_any_order(first: str) -> None:
    before = Catalogue(["a", "b"])
    storage = Storage(Environment(), StorageSpec(capacity=100), before, name="a")
    for file in "xyz":
        storage.add(file, 20)
    before.declare("nowhere", 5)
    storage.add("late", 7)
    storage.drop("x", last=True)
    storage.add("x", 20)  # the oldest in the catalogue, the youngest in the storage
    after = Catalogue(["a", "b"])
    copy = Storage(Environment(), StorageSpec(capacity=100), after, name="a")
    if first == "catalogue":
        after.restore(before.state())
        copy.restore(storage.state())
    else:
        copy.restore(storage.state())
        after.restore(before.state())
    assert (copy.state(), after.state()) == (storage.state(), before.state())
    assert list(copy.files) == ["y", "z", "late", "x"]
    assert after.names() == ["x", "y", "z", "nowhere", "late"]
    assert (after.size("x"), after.size("nowhere"), after.bytes_at("a"), copy.used) == (20, 5, 67, 67)


def test_a_catalogue_knows_sizes_of_replicas_that_no_storage_has() -> None:
    catalogue = Catalogue.from_columns(["a", "b"], ["x", "y"], [20, 30], ["b", "a"])
    a = Storage(Environment(), StorageSpec(capacity=100), catalogue, name="a")
    b = Storage(Environment(), StorageSpec(capacity=100), catalogue, name="b")
    assert (list(a.files), list(b.files)) == ([], [])
    a.add("x", 20)
    b.add("y", 30)
    catalogue.remove("y", "a")
    a.drop("x")
    catalogue.add("z", "a", 7)
    assert (list(a.files), list(b.files), catalogue.sites_of("x")) == ([], ["y"], ("b",))
    assert [catalogue.size(file) for file in "xyz"] == [20, 30, 7]
    b.drop("y", last=True)
    assert (catalogue.size("y"), catalogue.bytes_at("a"), catalogue.bytes_at("b")) == (30, 7, 20)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("x", 1, "a"), ("x", 2, "b")], "file 'x': must have one size, got 1 and 2 bytes"),
        ([("x", 1, "d")], "catalogue: unknown site 'd'; known sites: a, b"),
        ([("x", -1, "a")], "file 'x', size: must be finite and >= 0, got -1"),
        ([("x", float("nan"), "a")], "file 'x', size: must be finite and >= 0, got nan"),
    ],
)
def test_wrong_rows_are_refused(rows: list[tuple[str, float, str]], message: str) -> None:
    with pytest.raises(InputError) as error:
        Catalogue.from_columns(["a", "b"], *zip(*rows, strict=True))
    assert str(error.value) == message


def test_wrong_questions_to_a_catalogue() -> None:
    catalogue = Catalogue(["a"])
    for ask in (catalogue.size, catalogue.sites_of, catalogue.may_drop, lambda file: catalogue.add(file, "a")):
        with pytest.raises(InputError, match="catalogue: unknown file 'x'"):
            ask("x")
    catalogue.declare("x", 1)
    with pytest.raises(InputError, match="catalogue: file 'x' has no replica at 'a'"):
        catalogue.remove("x", "a")
    with pytest.raises(InputError, match="sites: duplicate name 'a'"):
        Catalogue(["a", "b", "a"])
    assert not catalogue.holds("y", "a")
