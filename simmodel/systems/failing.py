"""Random failures and repairs of the parts of a system: nodes, switches, links and sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from simmodel.metrics.report import duration

if TYPE_CHECKING:
    import numpy as np

    from simmodel.environment import Environment
    from simmodel.platform.cluster import FailureModel

__all__ = ["FailingPart", "Failures"]

KINDS = ("nodes", "switches", "links", "sites")
FailingPart: TypeAlias = int | str
"""A node by its number (or a processor), a switch, a link or a site by its name."""


class Failures:
    """Draws when the parts of a system fail and are repaired, and counts it.

    Parameters
    ----------
    env, name
        the environment; the name of the system, with which the names of its random streams begin
    models
        the failure models of its spec
    parts
        returns the parts that a model, by its number, is of
    plan
        plans :meth:`fail` or :meth:`repair` for an instant (s), given as ``"fail"`` or ``"repair"``, model and part
    change
        takes a part down (1), or ends that (-1), given the model, the part and this number

    Attributes
    ----------
    down
        the parts that are down, by model and part, and since when (s)
    """

    def __init__(
        self,
        env: Environment,
        name: str,
        models: Sequence[FailureModel],
        parts: Callable[[int], Iterable[FailingPart]],
        plan: Callable[[float, str, int, FailingPart], object],
        change: Callable[[int, FailingPart, int], object],
    ) -> None:
        self._env = env
        self._name = name
        self._models = models
        self._parts = parts
        self._plan = plan
        self._change = change
        self.down: dict[tuple[int, FailingPart], float] = {}
        self._counts: Counter[str] = Counter()
        self._seconds: dict[str, float] = dict.fromkeys(KINDS, 0.0)

    def begin(self) -> None:
        for number in range(len(self._models)):
            for part in self._parts(number):
                self.wait(number, part)

    def _rng(self, number: int, part: FailingPart) -> np.random.Generator:
        of = self._models[number].of
        if of == "nodes":
            return self._env.rng(f"{self._name}.failures.{number}")
        again = sum(model.of == of for model in self._models[:number])
        return self._env.rng(f"{self._name}.failures.{of}.{part}" + (f".{again}" if again else ""))

    def _after(self, seconds: float, what: str, number: int, part: FailingPart) -> None:
        if seconds < inf:
            self._plan(self._env.now + seconds, what, number, part)

    def wait(self, number: int, part: FailingPart) -> None:
        self._after(self._models[number].draw_time_to_failure(self._rng(number, part)), "fail", number, part)

    def fail(self, number: int, part: FailingPart) -> None:
        """Take a part down, and plan its repair."""
        model = self._models[number]
        self._counts[model.of] += 1
        self.resume(number, part)
        self._change(number, part, 1)
        self._after(model.draw_time_to_repair(self._rng(number, part)), "repair", number, part)

    def repair(self, number: int, part: FailingPart) -> None:
        """Bring a part back, and plan its next failure."""
        self.back(number, part)
        self.wait(number, part)

    def back(self, number: int, part: FailingPart) -> None:
        """Bring a part back without planning its next failure, as what-ifs do."""
        self._seconds[self._models[number].of] += self._env.now - self.down.pop((number, part))
        self._change(number, part, -1)

    def resume(self, number: int, part: FailingPart) -> None:
        """Count the time of a part that is down from now on, as after a snapshot."""
        self.down[number, part] = float(self._env.now)

    def notes(self) -> tuple[str, ...]:
        """Return a sentence about the failures so far by kind, and how long they lasted; parts may overlap."""
        seconds = self._seconds.copy()
        for (number, _), since in self.down.items():
            seconds[self._models[number].of] += self._env.now - since
        told = [
            f"{self._counts[of]:,} of {of} (down for {duration(seconds[of])})"
            for of in KINDS
            if self._counts[of] or seconds[of]
        ]
        return (f"{self._name}: failures: {', '.join(told)}",) if told else ()
