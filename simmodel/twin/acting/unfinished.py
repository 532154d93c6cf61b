"""The actions in an audit log: those without an outcome, and those that count towards the budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simmodel.twin.acting.actions import Action, Outcome
from simmodel.twin.acting.limits import HOUR
from simmodel.twin.events import read_fields

__all__ = ["PastActions"]


class PastActions:
    """The actions of an audit log, line by line.

    Attributes
    ----------
    number
        the number of the last action
    spent
        the instants (s) of the actions of the last hour
    preferred
        the jobs that are moved forward, and how far
    """

    def __init__(self) -> None:
        self.number = 0
        self.spent: list[float] = []
        self.preferred: dict[tuple[int | str, float], int] = {}
        self._open: dict[int, Action] = {}

    @property
    def open(self) -> list[Action]:
        """The actions for which the log has no outcome."""
        return list(self._open.values())

    def take(self, kind: str, values: Mapping[str, Any]) -> None:
        """Go on by a line of kind ``"action"`` or ``"outcome"``."""
        if kind == "action":
            action = Action.of(values["action"])
            self.number = action.number
            self._open[action.number] = action
            self.spent = [at for at in self.spent if at > action.time - HOUR] if len(self.spent) > 1000 else self.spent
            self.spent.append(action.time)
        elif kind == "outcome":
            outcome = read_fields(values["outcome"], Outcome)
            done = self._open.pop(outcome.number, None)
            if done is not None and outcome.what in ("done", "already"):
                if done.command == "prefer":
                    self.preferred[done.job, done.submit] = done.value
                elif done.command == "unprefer":
                    self.preferred.pop((done.job, done.submit), None)
