"""Equal split: each link divides its capacity equally among its transfers, whether they can use their part or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from simmodel.resources.network.sharing_rule import FlowView, SharingRule

__all__ = ["EqualSplit"]


class EqualSplit(SharingRule):
    """A transfer gets its smallest part of a link: of each link, the capacity over the number of transfers.

    Without the second look of max-min fairness: capacity that a transfer held up elsewhere leaves is used by nobody.
    """

    takes: ClassVar = {}

    def rates(self, flows: Sequence[FlowView]) -> list[float]:
        """Return the smallest part of each transfer."""
        users = Counter(link for flow in flows for link in flow.links)
        return [min([flow.cap, *(link.capacity / users[link] for link in flow.links)]) for flow in flows]
