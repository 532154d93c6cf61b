"""Snapshots of a custom kind of system: typed fields suffice to read and write them."""

from __future__ import annotations

import json
from math import inf
from typing import ClassVar, NamedTuple

import attrs
import pytest

from simmodel import InputError, Snapshot
from simmodel.snapshots.broker import BrokerSnapshot
from simmodel.snapshots.types import Columns, Instant, Seconds, Size


class Held(NamedTuple):
    """Work in a bag."""

    id: int | str
    work: Seconds
    slots: Size = 1
    where: str = ""


@attrs.frozen
class Lid:
    """The lid of a bag."""

    until: Instant
    tight: bool = False


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class BagSnapshot(Snapshot):
    """A bag at one instant."""

    system: ClassVar[str] = "bag of a test"

    held: Columns[Held] = ()
    lid: Lid | None = None

    @property
    def ids(self) -> list[int | str]:
        return [each.id for each in self.held]


BAG = BagSnapshot(
    name="bag", now=3.5, held=(Held("a", 2.0), Held(7, inf, 4, "left")), lid=Lid(9.0), streams=(("s", {"state": 1}),)
)


def test_typed_fields_are_read_and_written():
    text = BAG.to_json()
    assert json.loads(text) == {
        "format": "simmodel snapshot",
        "schema": 1,
        "system": "bag of a test",
        "name": "bag",
        "now": 3.5,
        "seed": 0,
        "streams": {"s": {"state": 1}},
        "held": {"id": ["a", 7], "work": [2.0, "inf"], "slots": [1, 4], "where": ["", "left"]},
        "lid": {"until": 9.0},
    }
    again = Snapshot.from_json(text)
    assert again == BAG
    assert attrs.astuple(again, recurse=False) == attrs.astuple(BAG, recurse=False)


def test_columns_of_defaults_are_left_out_and_one_text_stands_for_all():
    bag = attrs.evolve(BAG, held=(Held("a", 2.0, 1, "left"), Held("b", 3.0, 1, "left")))
    assert json.loads(bag.to_json())["held"] == {"id": ["a", "b"], "work": [2.0, 3.0], "where": "left"}
    assert Snapshot.from_json(bag.to_json()) == bag


def test_a_broker_holds_systems_of_any_kind():
    inner = BrokerSnapshot(name="inner", now=3.5, places=(BAG,))
    outer = BrokerSnapshot(now=3.5, places=(BAG, inner))
    again = Snapshot.from_json(outer.to_json())
    assert again == outer
    assert [type(each) for each in again.below] == [BagSnapshot, BrokerSnapshot]
    assert again.ids == ["a", 7, "a", 7]


@pytest.mark.parametrize(("path", "value", "sentence"), [
    ("seed", 2.9, "seed: must be a whole number >= 0, got 2.9"),
    ("seed", "7", "seed: must be a whole number >= 0, got '7'"),
    ("seed", True, "seed: must be a whole number >= 0, got True"),
    ("now", "soon", r"now: must be an instant \(s\), got 'soon'"),
    ("now", "inf", r"now: must be an instant \(s\), got 'inf'"),
    ("held.work", [1.0, -1.0], r"held.work\[1\]: must be a number >= 0 \(s\), got -1.0"),
    ("held.work", [1.0], "held.work: must have 2 values, got 1"),
    ("held.slots", [1, 0], r"held.slots\[1\]: must be a whole number >= 1, got 0"),
    ("held.colour", [1, 0], "held.colour: unknown column 'colour'"),
    ("lid.until", None, r"lid.until: must be an instant \(s\), got None"),
    ("lid.tight", 1, "lid.tight: must be true or false, got 1"),
    ("lid.colour", 1, "lid.colour: unknown key 'colour'"),
])  # fmt: skip
def test_nothing_is_rounded_or_guessed(path, value, sentence, tmp_path):
    document = json.loads(BAG.to_json())
    *parts, last = path.split(".")
    inside = document
    for part in parts:
        inside = inside[part]
    inside[last] = value
    file = tmp_path / "bag.json"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match=f"bag.json, {sentence}"):
        Snapshot.from_json(file)
