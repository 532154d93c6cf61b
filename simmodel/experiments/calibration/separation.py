"""Searches of blocks of parameters that share their simulations, where no block acts on the loss of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf, log2
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.experiments.calibration.fitting import STOP, Block
from simmodel.experiments.parameters import Space
from simmodel.experiments.search_methods import Search, search_named
from simmodel.experiments.trials import Trial

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Searches", "loss_in"]

_FEW = 5  # losses below which there are no bounds
_BITS = 2  # of the numbers of blocks, by which they are moved apart


class Searches:
    """Proposes the next trials of a calibration: by one search for all parameters, or by one for each block.

    The first trial is at the start. If it is to be found out whether blocks are separable, some trials follow that move
    a part of the blocks: the losses of the others must stay as they are, to the last bit.

    Parameters
    ----------
    space, blocks
        the parameters
    method, seed, size, budget
        see :class:`~simmodel.experiments.search_methods.Search`
    start
        the first point
    separable
        whether each block has a search of its own; ``None``: it is found out
    stop_early
        whether a trial is stopped that is surely worse than the median of those before
    """

    def __init__(
        self,
        space: Space,
        blocks: Sequence[Block],
        method: str,
        *,
        seed: int,
        size: int,
        budget: int,
        start: NDArray[np.float64],
        separable: bool | None,
        stop_early: bool = False,
    ) -> None:
        self.space, self.blocks = space, tuple(blocks)
        self._told = separable if len(self.blocks) > 1 else False
        self._method, self._seed, self._size, self._budget = method, seed, size, budget
        self._start, self._stop_early = start, stop_early
        self._masks = self._moved() if self._told is None else []
        self.first = 1 + len(self._masks)
        self._searches: list[Search] = []
        self._points: list[NDArray[np.float64]] = []

    def _moved(self) -> list[list[bool]]:
        """Return which blocks each trial of the first ones moves: any two are moved apart, or nearly any."""
        count = len(self.blocks)
        found = []
        for bit in range(min(_BITS, ceil(log2(count)))):
            mask = [bool(number >> bit & 1) for number in range(count)]
            found += [mask, [not each for each in mask]]
        return found

    def separable(self, trials: Sequence[Trial]) -> bool:
        """Whether each block has a search of its own, as specified or as the first trials show."""
        if self._told is not None:
            return self._told
        if len(trials) < self.first or trials[0].state != "finished":
            return False
        begin = trials[0].outcome
        for mask, trial in zip(self._masks, trials[1:], strict=False):
            if trial.state != "finished":
                return False
            for moved, block in zip(mask, self.blocks, strict=True):
                before, now = begin[block.label], trial.outcome[block.label]
                if not moved and before != now and (before == before or now == now):
                    return False
        return True

    def __call__(self, trials: list[Trial]) -> list[Mapping[str, Any]]:
        """Return the values of the next trials."""
        if len(trials) < self.first:
            return [self.space.values(point) for point in self._first_points()[len(trials) :]]
        for trial in trials[len(self._points) :]:
            self._points.append(self.space.point(trial.values))
        points = np.stack(self._points)
        separate = self.separable(trials)
        parts = self.blocks if separate else (Block("", tuple(range(len(self.space)))),)
        if not self._searches:
            self._searches = [self._search(number, part) for number, part in enumerate(parts)]
        asked = []
        for part, search in zip(parts, self._searches, strict=True):
            losses = np.array([loss_in(trial, part if separate else None) for trial in trials])
            asked.append((part, search.ask(points[:, part.parameters], losses), losses))
        count = max(len(found) for _, found, _ in asked)
        proposed = np.zeros((count, len(self.space)))
        for part, found, losses in asked:
            best = points[int(np.argmin(np.where(np.isnan(losses), inf, losses))), part.parameters]
            proposed[:, part.parameters] = np.vstack([found, np.tile(best, (count - len(found), 1))])
        bounds = self._bounds(trials, separate)
        return [{**self.space.values(point), **bounds} for point in proposed]

    def _bounds(self, trials: Sequence[Trial], separate: bool) -> dict[str, Any]:
        """Return the bounds above which a trial may stop: the median of each loss so far."""
        if not self._stop_early:
            return {}
        names = [block.label for block in self.blocks] if separate else ["loss"]
        found = {}
        for name in names:
            losses = [trial.outcome[name] for trial in trials if trial.state == "finished" and name in trial.outcome]
            known = [loss for loss in losses if loss == loss]
            if len(known) < _FEW:
                return {}
            found[name] = float(np.median(known))
        return {STOP: found}

    def _search(self, number: int, part: Block) -> Search:
        parameters = [self.space.parameters[i] for i in part.parameters]
        left = max(self._budget - self.first, 0)
        make = search_named(self._method)
        return make(parameters, [self._seed, number], size=self._size, budget=left, first=self.first)

    def _first_points(self) -> list[NDArray[np.float64]]:
        found = [self._start]
        for number, mask in enumerate(self._masks):
            point = self._start.copy()
            other = np.random.default_rng([self._seed, 1, number // 2]).random(len(self.space))
            for moved, block in zip(mask, self.blocks, strict=True):
                if moved:
                    point[list(block.parameters)] = other[list(block.parameters)]
            found.append(point)
        return found

    def best(self, trials: Sequence[Trial]) -> dict[str, Any]:
        """Return the best values: of the best trial, or of that of each block."""
        parts: Sequence[Block | None] = self.blocks if self.separable(trials) else [None]
        found: dict[str, Any] = {}
        for part in parts:
            losses = [loss_in(trial, part) for trial in trials]
            values = trials[int(np.argmin(np.where(np.isnan(losses), inf, losses)))].values
            names = self.space.names if part is None else [self.space.names[i] for i in part.parameters]
            found |= {name: values[name] for name in names}
        return {name: found[name] for name in self.space.names}


def loss_in(trial: Trial, block: Block | None) -> float:
    """Return the loss of a trial, in all or of a block; nan if it failed."""
    if trial.state != "finished":
        return float("nan")
    return trial.outcome.get("loss" if block is None else block.label, float("nan"))
