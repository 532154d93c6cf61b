"""Methods of search in the unit cube: random, grid, Sobol, CMA-ES, TPE and Gaussian process.

A method proposes points from those that were tried, and depends on these alone: a process that joins a search, or goes
on with it, proposes the same ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simmodel.foundation.errors import InputError, optional_imports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array: TypeAlias = "NDArray[np.float64]"

    from simmodel.experiments.parameters import Parameter

__all__ = ["SEARCHES", "Search", "search_named"]


class Search:
    """A search for the least loss in a unit cube: derive from it and define :meth:`ask`.

    Parameters
    ----------
    parameters
        the axes of the cube
    seed
        numbers that seed it
    size
        the points of a generation
    budget
        the points that may be asked for in all
    first
        the points that were tried before the first one that it asks for
    """

    def __init__(
        self, parameters: Sequence[Parameter], seed: Sequence[int], *, size: int, budget: int, first: int
    ) -> None:
        self.parameters = tuple(parameters)
        self.seed = list(seed)
        self.size, self.budget, self.first = size, budget, first
        self.prepare()

    def prepare(self) -> None:
        """Prepare the search, when it is made."""

    @property
    def dimensions(self) -> int:
        return len(self.parameters)

    def ask(self, points: Array, losses: Array) -> Array:
        """Return the next points, one a row; none if the search is at its end.

        Parameters
        ----------
        points, losses
            all that were tried, in order; a loss is nan if the trial failed
        """
        raise NotImplementedError

    def rng(self, *more: int) -> np.random.Generator:
        return np.random.default_rng([*self.seed, *more])


class RandomSearch(Search):
    """Uniform points."""

    def ask(self, points: Array, losses: Array) -> Array:
        return self.rng(len(points)).random((self.size, self.dimensions))


class SobolSearch(Search):
    """Sobol's sequence, scrambled: it fills the cube more evenly than random points.

    Source: I. M. Sobol', USSR Computational Mathematics and Mathematical Physics 7(4), 1967; A. B. Owen, "Scrambling
    Sobol' and Niederreiter-Xing points", Journal of Complexity 14, 1998.
    """

    def prepare(self) -> None:
        """Draw the points."""
        with optional_imports():
            from scipy.stats import qmc
        engine = qmc.Sobol(self.dimensions, scramble=True, seed=self.rng())
        count = max(self.budget, 1)
        self._points = engine.random_base2(max(0, int(np.ceil(np.log2(count)))))[:count]

    def ask(self, points: Array, losses: Array) -> Array:
        at = len(points) - self.first
        return np.asarray(self._points[at : at + self.size])


class GridSearch(Search):
    """As many values of each parameter, evenly spaced with both ends, as the budget allows, in a random order."""

    def prepare(self) -> None:
        """Lay out the grid."""
        levels = int(max(self.budget, 0) ** (1 / self.dimensions) + 1e-9)
        if levels < 2:
            least = 2**self.dimensions + self.first
            message = f"must be at least {least:,} for a grid of {self.dimensions} parameters"
            raise InputError(f"{message}, got {self.budget + self.first}", place="budget")
        points = np.array(list(product(*(_levels(each, levels) for each in self.parameters))))
        self._points = self.rng().permutation(points)

    def ask(self, points: Array, losses: Array) -> Array:
        at = len(points) - self.first
        return np.asarray(self._points[at : at + self.size])


def _levels(parameter: Parameter, count: int) -> list[float]:
    """Return the positions of the values of a parameter on a grid."""
    if parameter.choices:
        return [parameter.unit(value) for value in parameter.choices]
    values = dict.fromkeys(parameter.value(position) for position in np.linspace(0, 1, count).tolist())
    return [parameter.unit(value) for value in values]


class Replayed(Search):
    """A search with a state, which hears of the points that it asked for in order."""

    def prepare(self) -> None:
        self._asked: list[tuple[Any, Array]] = []
        self._heard = self.first

    def ask(self, points: Array, losses: Array) -> Array:
        """Return the next points."""
        worst = np.nanmax(losses) if np.isfinite(losses).any() else 1.0
        told = np.where(np.isfinite(losses), losses, worst)
        if self._heard == self.first and not self._asked:
            self.begin(points[: self.first], told[: self.first])
        while True:
            if not self._asked:
                self._asked = self.generation()
            count = min(len(self._asked), len(points) - self._heard)
            if count < len(self._asked):
                return np.stack([point for _, point in self._asked[count:]])
            self.tell(self._asked, told[self._heard : self._heard + count])
            self._heard += count
            self._asked = []

    def begin(self, points: Array, losses: Array) -> None:
        """Begin with the points tried before and their losses."""
        raise NotImplementedError

    def generation(self) -> list[tuple[Any, Array]]:
        """Return the next points, each with its handle for :meth:`tell`."""
        raise NotImplementedError

    def tell(self, asked: Sequence[tuple[Any, Array]], losses: Array) -> None:
        """Hear of the losses of a generation."""
        raise NotImplementedError


class EvolutionStrategy(Replayed):
    """CMA-ES, from the best point so far; it begins anew, with twice as many points, when it has converged.

    Above 50 parameters its covariance is diagonal.

    Source: N. Hansen, A. Ostermeier, "Completely derandomized self-adaptation in evolution strategies", Evolutionary
    Computation 9(2), 2001; R. Ros, N. Hansen, "A simple modification in CMA-ES", PPSN X, 2008.
    """

    def begin(self, points: Array, losses: Array) -> None:
        """Begin around the best point."""
        self._starts = 0
        self._start(points[np.argmin(losses)] if len(points) else np.full(self.dimensions, 0.5))

    def _start(self, mean: Array) -> None:
        with optional_imports():
            import cmaes
        dimensions = max(self.dimensions, 2)  # it takes no single one: the second one acts on nothing
        make = cmaes.CMA if dimensions <= _DENSE else cmaes.SepCMA
        centre = np.full(dimensions, 0.5)
        centre[: self.dimensions] = np.clip(mean, 0.05, 0.95)
        bounds = np.tile([0.0, 1.0], (dimensions, 1))
        seed = int(self.rng(self._starts).integers(2**31))
        self._search = make(centre, _STEP, bounds=bounds, seed=seed, population_size=self.size)
        self._starts += 1

    def generation(self) -> list[tuple[Any, Array]]:
        asked = [self._search.ask() for _ in range(self._search.population_size)]
        return [(each, each[: self.dimensions]) for each in asked]

    def tell(self, asked: Sequence[tuple[Any, Array]], losses: Array) -> None:
        self._search.tell([(each, float(loss)) for (each, _), loss in zip(asked, losses, strict=True)])
        if self._search.should_stop():
            self._start(self.rng(1, self._starts).random(self.dimensions))


_DENSE = 50  # most parameters with a full covariance
_STEP = 0.25  # first standard deviation


class ParzenSearch(Replayed):
    """The tree-structured Parzen estimator, by optuna.

    Source: J. Bergstra et al., "Algorithms for hyper-parameter optimization", NeurIPS 2011.
    """

    def begin(self, points: Array, losses: Array) -> None:
        """Begin with the points tried before and their losses."""
        with optional_imports():
            import optuna
        self._optuna = optuna
        with _quiet(optuna):
            sampler = optuna.samplers.TPESampler(
                seed=int(self.rng().integers(2**31)), multivariate=True, constant_liar=True
            )
            self._search = optuna.create_study(sampler=sampler)
        ranges: dict[str, Any] = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(self.dimensions)}
        for point, loss in zip(points, losses, strict=True):
            given = {f"x{i}": float(value) for i, value in enumerate(point)}
            trial = optuna.trial.create_trial(params=given, distributions=ranges, value=float(loss))
            self._search.add_trial(trial)

    def generation(self) -> list[tuple[Any, Array]]:
        """Return the points of a generation."""
        found = []
        with _quiet(self._optuna):
            for _ in range(self.size):
                asked = self._search.ask()
                point = [asked.suggest_float(f"x{i}", 0.0, 1.0) for i in range(self.dimensions)]
                found.append((asked, np.array(point)))
        return found

    def tell(self, asked: Sequence[tuple[Any, Array]], losses: Array) -> None:
        for (each, _), loss in zip(asked, losses, strict=True):
            self._search.tell(each, float(loss))


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Keep optuna from announcing studies and experimental options."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


class SurfaceSearch(Search):
    """A Gaussian process over the logarithm of the loss, searched for the largest expected improvement.

    The points of a generation are chosen one after the other: each counts with its expected loss for the next.

    Source: D. R. Jones, M. Schonlau, W. J. Welch, "Efficient global optimization of expensive black-box functions",
    Journal of Global Optimization 13, 1998.
    """

    def ask(self, points: Array, losses: Array) -> Array:
        """Return the next points."""
        rng = self.rng(len(points))
        known = np.isfinite(losses)
        begun = max(4, 2 * self.dimensions)
        if known.sum() < begun or np.ptp(losses[known]) == 0:
            return rng.random((self.size, self.dimensions))
        worst = losses[known].max()
        wanted = _logged(np.where(known, losses, worst))
        keep = np.argsort(wanted, kind="stable")[:_MOST]
        x, y = points[keep], wanted[keep]
        process = self._process(rng)
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scales at their bounds
            process.fit(x, y)
            process.set_params(optimizer=None, kernel=process.kernel_)
            for _ in range(self.size):
                point = self._best(process, x, y, rng)
                found.append(point)
                x, y = np.vstack([x, point]), np.append(y, process.predict(point[None])[0])
                process.fit(x, y)
        return np.stack(found)

    def _process(self, rng: np.random.Generator) -> Any:
        with optional_imports():
            from sklearn.gaussian_process import GaussianProcessRegressor
            from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
        shape = Matern(np.full(self.dimensions, 0.3), (0.02, 10.0), nu=2.5)
        kernel = ConstantKernel(1.0, (1e-2, 1e3)) * shape + WhiteKernel(1e-4, (1e-8, 1e-1))
        return GaussianProcessRegressor(kernel, normalize_y=True, random_state=int(rng.integers(2**31)))

    def _best(self, process: Any, x: Array, y: Array, rng: np.random.Generator) -> Array:
        """Return the candidate with the largest expected improvement: some are anywhere, some near the best points."""
        with optional_imports():
            from scipy.stats import norm
        best = x[np.argsort(y, kind="stable")[:4]]
        near = best[rng.integers(len(best), size=_CANDIDATES)]
        step = np.exp(rng.uniform(np.log(1e-3), np.log(0.3), (_CANDIDATES, 1)))
        near = np.clip(near + step * rng.standard_normal(near.shape), 0, 1)
        candidates = np.vstack([rng.random((_CANDIDATES, self.dimensions)), near])
        mean, spread = process.predict(candidates, return_std=True)
        spread = np.maximum(spread, 1e-12)
        gain = y.min() - mean
        improvement = gain * norm.cdf(gain / spread) + spread * norm.pdf(gain / spread)
        return np.asarray(candidates[np.argmax(improvement)])


_MOST = 200  # points in a Gaussian process: the best ones
_CANDIDATES = 250


def _logged(losses: Array) -> Array:
    return np.log(np.maximum(losses, 1e-9)) if losses.min() >= 0 else losses


SEARCHES: dict[str, Callable[..., Search]] = {
    "random": RandomSearch,
    "grid": GridSearch,
    "sobol": SobolSearch,
    "cmaes": EvolutionStrategy,
    "tpe": ParzenSearch,
    "gp": SurfaceSearch,
}
"""The methods by name."""


def search_named(name: str) -> Callable[..., Search]:
    """Return the class of a method.

    Raises
    ------
    InputError
        there is none

    >>> search_named("random").__name__
    'RandomSearch'
    """
    if name not in SEARCHES:
        from simmodel.foundation.errors import unknown

        raise InputError(unknown("method", str(name), SEARCHES).message, place="method")
    return SEARCHES[name]
