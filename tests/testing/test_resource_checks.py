"""The checks of custom links, rules, storages and placements: right models pass, wrong ones are told what is wrong."""

from itertools import count

import numpy as np
import pytest

from simmodel.resources import Link, NodeChoice, SharingRule, Storage
from simmodel.testing import check_resource


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("tdma", {"slots": ["a", "b"], "slot": 0.5}),
        ("lossy", {"loss": 0.1, "segment": 10}),
        ("equal-split", {}),
        ("strict-priority", {}),
        ("disk", {}),
        ("burst-buffer", {"buffer": 60, "bandwidth": 50}),
        ("tape-library", {"drives": 2, "mount": 5, "tape": 200}),
        ("contiguous", {}),
        ("packed", {}),
    ],
)
def test_ready_models_pass(model, options):
    check_resource(model, **options)


class Fickle(Link):
    """A link that does not know what it wants."""

    numbers = count(1)

    def expected(self, transfer, now):
        return float(next(self.numbers))


class Closed(Link):
    """A link that lets nothing through."""

    def limit(self, transfer, now):
        return 0.0


class Counting(Link):
    """A link that is slower for each transfer that it has seen."""

    def __init__(self, spec):
        super().__init__(spec)
        self.seen = {}

    def limit(self, transfer, now):
        self.seen[transfer] = None
        return 100.0 / len(self.seen)


class Greedy(SharingRule):
    """A rule that gives everybody the whole link."""

    def rates(self, flows):
        return [min(link.capacity for link in flow.links) for flow in flows]


class Starving(SharingRule):
    """A rule that gives the last ones nothing, ever."""

    def rates(self, flows):
        return [0.0 for _ in flows]


class Full(Storage):
    """A storage that takes no file."""

    def admit(self, file, size):
        return file != "big"


class Worn(Storage):
    """A storage that is slower with each use, and forgets it in snapshots."""

    uses = 0

    def turns(self, channel, busy):
        self.uses += busy

    def read_bandwidth(self, readers):
        return self.spec.read_bandwidth / (1 + self.uses)


class Kept(Worn):
    """The same, with its memory in snapshots."""

    def own_state(self):
        return self.uses

    def restore_own(self, values):
        self.uses = values


class Uncopied(Worn):
    """The same, which says that it cannot be copied."""

    snapshots = False


class Fussy(NodeChoice):
    """Nodes only while there are few of them."""

    def nodes(self, table, candidates, count):
        return candidates

    def enough(self, table, candidates, amounts, needed):
        return len(candidates) < 5


def stubborn(table, candidates, count):
    """Return the same nodes whether they are free or not."""
    return np.arange(count)


def writing(table, candidates, count):
    """Return nodes by number, and take them."""
    table.free[0, candidates[:1]] -= 1
    return candidates


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Fickle, "Fickle: an answer changes when it is asked twice"),
        (Closed, "Closed: transfers never end"),
        (Counting, r"Counting: a question changes seen: .* turns\(now, load\)"),
        (Greedy, "Greedy: link own: Greedy.rates give"),
        (Starving, "Starving: transfers never end"),
        (Full, "Full: accesses never end|Full: files still wait for room at the end"),
        (Worn, r"Worn, continued from its snapshot at .*own_state\(\) and restore_own\(\) keep"),
        (Fussy, "Fussy: there is enough on nodes .* but not with more free nodes"),
        (stubborn, "stubborn: "),
        (writing, "writing: a question changes the free capacity"),
        (int, "a model must derive from one of"),
    ],
)
def test_wrong_models_are_told_what_is_wrong(model, message):
    with pytest.raises(AssertionError, match=message):
        check_resource(model)


@pytest.mark.parametrize("model", [Kept, Uncopied])
def test_what_a_model_says_of_snapshots_holds(model):
    check_resource(model)
