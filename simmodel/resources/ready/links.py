"""Ready links and rules of sharing them: a lossy link, a TDMA link, equal split, strict priority.

A lossy link sends lost packets again, and TCP slows down with them. The efficiency 1 - p of selective repeat: D.
Bertsekas, R. Gallager, "Data Networks", 2nd ed., section 2.4. The bound of TCP: M. Mathis, J. Semke, J. Mahdavi, T.
Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm", ACM SIGCOMM Computer Communication Review
27(3), 1997.

On a TDMA link stations send in turn, each in its own slots of a frame (time division multiple access). [L. Kleinrock,
"Queueing Systems, volume 2: computer applications", Wiley 1976, section 5.11; the slots of a frame are fixed, as in
GSM and in time-triggered buses.]

Equal split gives each transfer an equal part of a link, whether it can use it or not; strict priority serves
transfers of higher weight before those of lower weight get anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf, sqrt
from typing import TYPE_CHECKING, ClassVar

from simmodel.foundation.errors import InputError
from simmodel.resources.models import Option
from simmodel.resources.network.links import Link, Moving
from simmodel.resources.network.sharing import max_min_rates
from simmodel.resources.network.sharing_rule import FlowView, SharingRule

if TYPE_CHECKING:
    from simmodel.platform.network import LinkSpec

__all__ = ["EqualSplit", "LossyLink", "StrictPriority", "TDMALink"]


class LossyLink(Link):
    """A link that loses a share p of its packets and sends them again: it carries bandwidth * (1 - p) bytes/s.

    - ``loss``: p, the probability that a packet is lost, from 0 to below 1
    - ``segment``: bytes of a TCP segment; if given, each transfer has at most segment / RTT * sqrt(3 / 2 / p) bytes/s,
      where the round-trip time is twice the latency of the route
    """

    takes: ClassVar = {
        "loss": Option(),
        "segment": Option(0.0, unit="B"),
    }

    def __init__(self, spec: LinkSpec) -> None:
        super().__init__(spec)
        if self.options["loss"] >= 1:
            raise InputError(f"must be < 1, got {self.options['loss']!r}", place=f"options of link {spec.name}: loss")

    def carries(self, transfers: int) -> float:
        """Return the share of the bandwidth that is not lost."""
        return self.bandwidth * float(1 - self.options["loss"])

    def limit(self, transfer: Moving, now: float) -> float:
        """Return the bound of TCP, if it has one."""
        loss, segment, trip = self.options["loss"], self.options["segment"], 2 * transfer.way.latency
        return segment / trip * sqrt(1.5 / loss) if segment and loss and trip else inf


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
        return float((self.slot(now) + 1) * self.options["slot"])

    def expected(self, transfer: Moving, now: float) -> float:
        """Return the bandwidth over a whole frame."""
        if transfer.source not in self.owners:
            known = ", ".join(dict.fromkeys(self.owners))
            raise InputError(f"{transfer.source!r} has no slot; {known} have", place=f"link {self.name}")
        return self.bandwidth * self.owners.count(str(transfer.source)) / len(self.owners)


class EqualSplit(SharingRule):
    """A transfer gets its smallest part of a link: of each link, the capacity over the number of transfers.

    Without the second look of max-min fairness: capacity that a transfer held up elsewhere leaves is used by nobody.
    """

    takes: ClassVar = {}

    def rates(self, flows: Sequence[FlowView]) -> list[float]:
        """Return the smallest part of each transfer."""
        users = Counter(link for flow in flows for link in flow.links)
        return [min([flow.cap, *(link.capacity / users[link] for link in flow.links)]) for flow in flows]


class StrictPriority(SharingRule):
    """Transfers of the highest weight share the links by max-min fairness, those of the next one the rest."""

    takes: ClassVar = {}

    def rates(self, flows: Sequence[FlowView]) -> list[float]:
        """Return the rates, class by class."""
        left = {link.name: link.capacity for flow in flows for link in flow.links}
        rates = [0.0] * len(flows)
        for weight in sorted({flow.weight for flow in flows}, reverse=True):
            those = [i for i, flow in enumerate(flows) if flow.weight == weight]
            routes = [[link.name for link in flows[i].links] for i in those]
            found = max_min_rates(left, routes, caps=[flows[i].cap for i in those])
            for i, route, rate in zip(those, routes, found, strict=True):
                rates[i] = rate
                for name in route:
                    left[name] = max(0.0, left[name] - rate)
        return rates
