"""A lossy link: lost packets are sent again, and TCP slows down with them.

The efficiency 1 - p of selective repeat: D. Bertsekas, R. Gallager, "Data Networks", 2nd ed., section 2.4. The bound of
TCP: M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm", ACM
SIGCOMM Computer Communication Review 27(3), 1997.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING, ClassVar

from simmodel.foundation.errors import InputError
from simmodel.resources.models import Option
from simmodel.resources.network.links import Link, Moving

if TYPE_CHECKING:
    from simmodel.platform.network import LinkSpec

__all__ = ["LossyLink"]


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
