"""What of a cluster a platform cannot express: each with where it is, what it is, and what that means."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from simmodel.display import Fields

__all__ = ["Notes", "Unsupported"]


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
    """A list of what is not expressed, each entry once."""

    def __init__(self) -> None:
        self._found: dict[Unsupported, None] = {}

    def add(self, where: str, what: str, why: str) -> None:
        """Add an entry."""
        self._found[Unsupported(where, what, why)] = None

    def __iter__(self) -> Iterator[Unsupported]:
        return iter(self._found)
