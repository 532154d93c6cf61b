"""A TDMA link: stations send in turn, each in its own slots of a frame (time division multiple access).

[L. Kleinrock, "Queueing Systems, volume 2: computer applications", Wiley 1976, section 5.11; the slots of a frame are
fixed, as in GSM and in time-triggered buses.]
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, ClassVar

from simmodel.foundation.errors import InputError
from simmodel.resources.models import Option
from simmodel.resources.network.links import Link, Moving

if TYPE_CHECKING:
    from simmodel.platform.network import LinkSpec

__all__ = ["TDMALink"]


class TDMALink(Link):
    """A link on which a transfer moves at the full bandwidth in the slots of its source, and stands still in others.

    Transfers from one source share its slots. The first frame begins at time 0.

    - ``slots``: the sources by slot of the frame, such as ``["a", "b", "a"]``
    - ``slot``: seconds of each slot, or a text such as ``"10ms"``
    """

    takes: ClassVar = {
        "slots": Option(()),
        "slot": Option(unit="s", above=0),
    }

    def __init__(self, spec: LinkSpec) -> None:
        super().__init__(spec)
        self.owners = tuple(self.options["slots"])
        if not self.owners or not all(isinstance(each, str) for each in self.owners):
            given = spec.options.get("slots")
            raise InputError(f"must be names of sources, got {given!r}", place=f"options of link {spec.name}: slots")

    def slot(self, now: float) -> int:
        """Return the number of the slot at an instant (s), counted from time 0."""
        length: float = self.options["slot"]
        number = int(now / length)
        number += (number + 1) * length <= now
        return number - (number * length > now)

    def limit(self, transfer: Moving, now: float) -> float:
        """Return the bandwidth in a slot of the source, and 0 in others."""
        self.expected(transfer, now)  # raises if it has no slot
        return inf if self.owners[self.slot(now) % len(self.owners)] == transfer.source else 0.0

    def until(self, now: float) -> float:
        """Return the end of the current slot."""
        return float((self.slot(now) + 1) * self.options["slot"])

    def expected(self, transfer: Moving, now: float) -> float:
        """Return the bandwidth over a whole frame."""
        if transfer.source not in self.owners:
            known = ", ".join(dict.fromkeys(self.owners))
            raise InputError(f"{transfer.source!r} has no slot; {known} have", place=f"link {self.name}")
        return self.bandwidth * self.owners.count(str(transfer.source)) / len(self.owners)
