"""The properties of a cluster that a platform cannot express, each with its place and its consequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from simmodel.foundation.display import Fields
from simmodel.platform.node_lists import node_list

__all__ = ["STATE_OF_NOW", "Notes", "Unsupported"]

STATE_OF_NOW = "the state of now is no part of the platform: a source tells it"
"""Why a node that is out of service is noted."""


@attrs.frozen(order=False, repr=False)
class Unsupported(Fields):
    """Something that a platform does not express.

    >>> print(Unsupported("partition debug", "DefaultTime=01:00:00", "requests have their own limits"))
    partition debug: DefaultTime=01:00:00 (requests have their own limits)
    """

    where: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what} ({self.why})"


class Notes:
    """A list of the properties that are not expressed, each entry once."""

    def __init__(self) -> None:
        self._found: dict[Unsupported, None] = {}

    def add(self, where: str, what: str, why: str) -> None:
        """Add an entry."""
        self._found[Unsupported(where, what, why)] = None

    def add_of_nodes(self, told: Iterable[tuple[str, str, str]]) -> None:
        """Add entries of nodes, each as name, property and consequence; those that are alike as one.

        >>> notes = Notes()
        >>> notes.add_of_nodes((f"n{i}", "Features=big", "not modelled") for i in (1, 2))
        >>> [str(each) for each in notes]
        ['nodes n[1-2]: Features=big (not modelled)']
        """
        found: dict[tuple[str, str], list[str]] = {}
        for name, what, why in told:
            found.setdefault((what, why), []).append(name)
        for (what, why), names in found.items():
            brackets = any("[" in name for name in names)
            self.add(f"nodes {', '.join(names[:3]) if brackets else node_list(names)}", what, why)

    def __iter__(self) -> Iterator[Unsupported]:
        return iter(self._found)
