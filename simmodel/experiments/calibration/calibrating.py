"""Calibration: the values of a model's parameters with which it repeats a record best."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from math import log
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.experiments.calibration.calibrated import Calibration
from simmodel.experiments.calibration.fitting import ENDS, Block, Fit, blocks_of, times_of, trial_losses
from simmodel.experiments.calibration.identifiability import (
    WORSE,
    Runner,
    decides,
    fitted,
    identified,
    possible_times,
    refined,
    surroundings,
)
from simmodel.experiments.calibration.least_squares import Logarithms, descended, left_plateau, polished, spread
from simmodel.experiments.calibration.losses import Criterion, GivenLoss
from simmodel.experiments.calibration.observations import GivenRecord, Observations, Times, simulated_times
from simmodel.experiments.calibration.separation import Searches
from simmodel.experiments.calls import map_calls
from simmodel.experiments.ensembles import GivenStudy, search, study_of
from simmodel.experiments.models import Outputs, Varied
from simmodel.experiments.parameters import GivenSpace, Model, Space
from simmodel.experiments.search_methods import search_named
from simmodel.experiments.trials import Study, Trial
from simmodel.foundation.errors import InputError, SimmodelError, shown, unknown
from simmodel.records.observers import Bar, progress_bar
from simmodel.runs.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = "NDArray[np.float64]"

__all__ = ["calibrate"]

AnyLoss: TypeAlias = "GivenLoss | Callable[[Any, Any], Any] | None"


def calibrate(
    model: Model,
    record: GivenRecord | None,
    parameters: GivenSpace,
    loss: AnyLoss = "walltime",
    method: str | None = None,
    *,
    budget: int = 100,
    population: int | None = None,
    start: Mapping[str, Any] | None = None,
    separable: bool | None = None,
    holdout: float = 0,
    stop_early: bool = False,
    intervals: bool | None = None,
    level: float = 0.95,
    seed: int = 0,
    study: GivenStudy = None,
    force: bool = False,
    executor: Executor | None = None,
    progress: bool = False,
) -> Calibration:
    """Search for the values of a model's parameters with which it repeats a record best.

    Parameters
    ----------
    model
        a scenario, or a function of keywords. A function returns a result, or columns such as ``walltime`` with a
        number for each job of the record; if ``loss`` is ``None`` it returns the loss
    record
        the jobs with their recorded times: a workload, a result, a table, columns, or a file; ``None``: those of the
        scenario's workload
    parameters
        the range of each, by path or keyword: see :class:`~simmodel.experiments.parameters.Space`
    loss
        a name of :data:`~simmodel.experiments.calibration.losses.LOSSES`, a
        :class:`~simmodel.experiments.calibration.losses.Loss`, several with their weights, or
        ``function(returned, record)``, which returns a number or numbers by site. Losses are averaged geometrically
        over sites and classes of jobs, each of which counts once
    method
        ``"random"``, ``"grid"``, ``"sobol"``, ``"cmaes"``, ``"tpe"`` or ``"gp"`` (Gaussian process). Default: the
        least squares of the logarithms of walltimes, from several starts, for a function of at most 12 numbers with
        the loss ``"walltime"``, and without a study; else ``"cmaes"``
    budget
        the number of trials in all
    population
        the trials of a generation, which can run at once; default: 4 + 3 log(parameters that are searched together)
    start
        values of the first trial; default: those of the model, or the middle of their range
    separable
        whether each site has a search of its own; all share their simulations. It is right if the parameters of a site
        move the times of no other site, as under the broker ``recorded``; ``None``: it is found out
    holdout
        the share of jobs to hold out (the last ones of each site), or their number: their error is reported, too
    stop_early
        whether a simulation is stopped as soon as its losses are surely above the median of those before, from the jobs
        that have ended: of a scenario, with losses that are mean distances
    intervals
        whether to refine the best values, to find intervals by a bootstrap over jobs, and to name the parameters that
        the record cannot identify: this takes 7 runs for each parameter of a site, or of all sites if these are not
        separable. Default: if these are at most as many as the budget
    level
        confidence of the intervals
    seed
        of the search, and of a model that has none of its own: all trials have the same random numbers
    study
        the file that keeps the trials: the same call with it goes on where it was stopped, also with a larger budget,
        and several processes may share it
    force
        go on with a file whose runs were about something else, such as an older version of a function
    executor
        runs the model; default: this process
    progress
        show a progress bar, one step per trial

    Raises
    ------
    InputError
        a parameter, the loss or the method is wrong, or the record has no jobs of the model or of a site
    SimmodelError
        all trials failed
    MissingExtra
        a package of the method is not installed

    >>> seconds = np.array([100.0, 200.0, 400.0])
    >>> def model(speed=1.0, setup=0.0):
    ...     return {"walltime": seconds / speed + setup}
    >>> found = calibrate(model, model(1.6, 25.0), {"speed": (0.5, 4, "log"), "setup": (0, 100)}, budget=150)
    >>> {name: round(value, 1) for name, value in found.values.items()}
    {'speed': 1.6, 'setup': 25.0}
    """
    space = Space.of(parameters, model)
    search_named(method or _METHOD)
    _check_numbers(budget, population)
    model = _with_seed(model, space, seed)
    fit = _fit(model, record, space, loss, holdout)
    times = times_of_current(fit) if fit.observed is not None else None
    begin = _start(space, model, start)

    def run(several: Sequence[Mapping[str, Any]]) -> list[Times | None]:
        return map_calls(possible_times, fit, several, executor, progress)

    if method is None and study is None and population is None and not stop_early and is_smooth(fit):
        with progress_bar(budget, "trial", progress) as bar:
            solved = solution(fit, begin, budget, partial(_watched, bar, fit, executor), level, seed)
        if solved is not None:
            solved = attrs.evolve(solved, before=space.current(model), times_before=times)
            return attrs.evolve(solved, identified=()) if intervals is False else solved
    method = method or _METHOD
    searches = Searches(
        space,
        fit.blocks,
        method,
        seed=seed,
        size=population or _generation(fit.blocks, separable),
        budget=budget,
        start=begin,
        separable=separable,
        stop_early=stop_early,
    )
    if stop_early:
        _check_early(fit)
    about = [method, searches.first, seed, population]
    about += ["stops early"] * stop_early + [budget] * (method == "grid")
    digests = {"model": model, "parameters": space.document(), "record": record, "loss": loss, "holdout": holdout}
    kept = study_of(study, "calibrate", force, **digests, method=about)
    kept = Study(document={"about": "calibrate"}) if kept is None else kept
    search(kept, searches, budget, trial_losses, fit, executor=executor, progress=progress, undefined=True)
    trials = kept.trials()[:budget]
    if not any(trial.state == "finished" for trial in trials):
        raise SimmodelError(f"all {len(trials)} trials failed: {trials[0].error}")
    separate = searches.separable(trials)
    found = Calibration(
        fit=fit,
        method=method,
        trials=tuple(trials),
        separable=separate,
        before=space.current(model),
        values=searches.best(trials),
        times_before=times,
        times_after=None,
        level=level,
    )
    if fit.observed is None:
        return found
    parts = fit.blocks if separate else (_whole(fit),)
    runs = 2 + 7 * max(len(part.parameters) for part in parts)
    wanted = runs <= max(budget, _CHEAP) if intervals is None else intervals
    return _examined(found, parts, run, seed) if wanted else _rerun(found)


_METHOD = "cmaes"  # where least squares do not apply
_ROUNDS = 3  # in which the best values are refined, a run each
_CHEAP = 30  # runs that are always made to find intervals


def _whole(fit: Fit) -> Block:
    return Block("", tuple(range(len(fit.varied.space))))


def _rerun(found: Calibration) -> Calibration:
    return attrs.evolve(found, times_after=times_of(found.fit, found.values))


def _examined(found: Calibration, parts: Sequence[Block], run: Runner, seed: int) -> Calibration:
    """Return a calibration with refined values, and with intervals."""
    space = found.fit.varied.space
    near = surroundings(found.fit, parts, space.point(found.values), run, fine=is_smooth(found.fit))
    if near is None:
        return _rerun(found)
    best, times = near.point, near.times
    for turn in range(_ROUNDS):
        best, times = refined(found.fit, parts, near.moved_to(best, times), run, seed + turn)
    searched = times
    for _ in range(2):
        best, times = fitted(found.fit, parts, near.moved_to(best, times), run, searched)
    known = identified(found.fit, parts, near, best, times, run, seed=seed, level=found.level)
    return attrs.evolve(found, values=space.values(best), times_after=times, identified=tuple(known))


def _watched(bar: Bar, fit: Fit, executor: Executor | None, several: Sequence[Mapping[str, Any]]) -> list[Times | None]:
    """Return the times of runs; a step of the bar for each that is a trial: slopes take several at once."""
    found = map_calls(possible_times, fit, several, executor, False)
    bar.update(1)
    return found


def _check_early(fit: Fit) -> None:
    """Refuse to stop trials whose losses the jobs that have ended do not bound."""
    if fit.observed is None or fit.criterion is None or not isinstance(fit.varied.model, Scenario):
        raise InputError("must be False with a function: only runs of a scenario can be stopped", place="stop_early")
    if not any(name in fit.observed.jobs for name in ENDS):
        raise InputError("must be False with a record that has no ends of jobs", place="stop_early")
    for name, loss in fit.criterion.losses.items():
        if not loss.grows:
            raise InputError(f"must be False with the loss {name}, which more jobs may lower", place="stop_early")


def _check_numbers(budget: int, population: int | None) -> None:
    for name, value, least in (("budget", budget, 1), ("population", population, 2)):
        if name == "population" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"must be a whole number >= {least}, got {shown(value)}", place=name)


def _with_seed(model: Model, space: Space, seed: int) -> Model:
    """Return the model with a fixed seed, if it has none: all trials have the same random numbers."""
    if isinstance(model, Scenario):
        return attrs.evolve(model, seed=seed) if model.seed is None else model
    known = inspect.signature(model).parameters
    paths = {path for each in space.parameters for path in each.paths}
    return partial(model, seed=seed) if "seed" in known and "seed" not in paths else model


def _fit(model: Model, record: GivenRecord | None, space: Space, loss: AnyLoss, holdout: float) -> Fit:
    varied, blocks = Varied(model, space, Outputs({})), blocks_of(space, model)
    if loss is None or callable(loss):
        if holdout:
            raise InputError("must be 0 with a loss that is a function", place="holdout")
        return Fit(varied, None, None, loss, record, blocks)
    criterion = Criterion.of(loss)
    if record is None:
        if not isinstance(model, Scenario):
            raise InputError("must be given with a model that is a function", place="record")
        record = model.workload
    observed = Observations.of(record, criterion.quantities, holdout)
    _check_sites(observed, blocks, space, model)
    return Fit(varied, criterion, observed, None, None, blocks)


def _check_sites(observed: Observations, blocks: tuple[Block, ...], space: Space, model: Model) -> None:
    """Refuse parameters of sites that the record does not have, and records that have none of the sites."""
    wanted = {site: block for block in blocks for site in sorted(block.sites)}
    if not wanted:
        return
    if not set(wanted) & set(observed.sites):
        theirs, ours = (", ".join(repr(each) for each in names[:3]) for names in (observed.sites, list(wanted)))
        raise InputError(f"has no jobs of the sites of the parameters: it has {theirs}, not {ours}", place="record")
    trained = {cell.site for cell in observed.training}
    for site, block in wanted.items():
        if site not in trained:
            name = space.names[block.parameters[0]]
            raise InputError(f"the record has no jobs of {site!r} to fit it to", place=f"parameters, {name}")


def times_of_current(fit: Fit) -> Times | None:
    """Return the times of the model as it is; ``None`` if a function has no defaults."""
    assert fit.observed is not None
    model = fit.varied.model
    if isinstance(model, Scenario):
        return simulated_times(model.run(), fit.observed)
    needed = [each for each in inspect.signature(model).parameters.values() if each.default is each.empty]
    if any(each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in needed):
        return None
    return simulated_times(model(), fit.observed)


def _generation(blocks: tuple[Block, ...], separable: bool | None) -> int:
    together = max(len(block.parameters) for block in blocks)
    if separable is False:
        together = sum(len(block.parameters) for block in blocks)
    return max(6, 4 + int(3 * log(together)))


def _start(space: Space, model: Model, given: Mapping[str, Any] | None) -> Any:
    """Return the first point: given values, else those of the model, else the middle of the range."""
    for name in given or ():
        if name not in space.names:
            raise InputError(unknown("parameter", str(name), space.names).message, place="start")
    values = {**space.current(model), **(given or {})}
    found = []
    for each in space.parameters:
        value = values[each.name]
        known = value in each.choices if each.choices else isinstance(value, int | float)
        found.append(each.unit(value) if known else 0.5)
    return np.array(found)


# ---------------------------------------------------------------------- least squares from several starts

_MOST = 12  # parameters
_STARTS = 2  # ways down to least squares from each kind of points
_AS_GOOD = 4.0  # by which a deviance may be worse: the likelihood does not tell the values apart


def is_smooth(fit: Fit) -> bool:
    """Whether least squares apply: to walltimes that a function returns, of a few parameters that are numbers."""
    space = fit.varied.space
    numbers = not any(each.choices or each.whole for each in space.parameters)
    plain = not isinstance(fit.varied.model, Scenario) and len(fit.blocks) == 1
    return plain and numbers and len(space) <= _MOST and decides(fit)


def solution(fit: Fit, start: Array, budget: int, run: Runner, level: float, seed: int) -> Calibration | None:
    """Return the least squares of a function; ``None`` where a search by trials does better.

    That is so if the budget is small, if the times do not depend on each parameter smoothly, or if odd jobs make the
    loss of least squares much larger than the least one.

    Parameters
    ----------
    fit
        a function, for which :func:`is_smooth` holds
    start
        the first point
    budget
        the number of trials: points that are tried, those of slopes not counted
    run
        runs the model
    level, seed
        of the intervals
    """
    assert fit.observed is not None
    space = fit.varied.space
    part = Block("", tuple(range(len(space))))
    logs = Logarithms.of(fit.observed, part)
    count = 8 + 6 * len(space)
    if logs is None or budget < 1 + count + 4 * _STARTS:
        return None

    def times_at(points: Sequence[Array]) -> list[Times | None]:
        return run([space.values(point) for point in points])

    points = [start, *spread(space.parameters, count)]
    runs = times_at(points)
    sums = [np.inf if times is None else float((logs.errors(times) ** 2).sum()) for times in runs]
    order = sorted((i for i, sum_ in enumerate(sums) if np.isfinite(sum_)), key=sums.__getitem__)
    starts = sorted(each for half in (0, 1) for each in [i for i in order if i % 2 == half][:_STARTS])
    rounds = (budget - len(points)) // max(len(starts), 1)
    ways = [descended(logs, space.parameters, times_at, points[i], times, rounds) for i in starts if (times := runs[i])]
    if not ways:
        return None
    ways.sort(key=lambda way: way.squares)
    ways.insert(0, left_plateau(logs, space.parameters, times_at, ways[0]))
    best = polished(logs, space.parameters, times_at, ways[0])
    near = surroundings(fit, [part], best.points[-1], run, fine=True)
    if near is None or any(not any(steep[i].any() for steep in near.slopes.values()) for i in range(len(space))):
        return None
    _, nearby = refined(fit, [part], near, run, seed)
    if fit.losses(near.times)["loss"] > WORSE * fit.losses(nearby)["loss"]:
        return None
    known = identified(fit, [part], near, near.point, near.times, run, seed=seed, level=level)
    bound = ways[0].squares * (1 + _AS_GOOD / len(logs.recorded)) + 1e-12
    for way in ways[1:]:
        if way.squares <= bound:
            known = [
                each.besides(parameter, at, [other])
                for each, parameter, at, other in zip(known, space.parameters, near.point, way.points[-1], strict=True)
            ]
    tried = [(space.values(point), times) for point, times in zip(points, runs, strict=True)]
    tried += [(space.values(point), times) for way in (*ways[1:], best) for point, times in way.steps]
    return Calibration(
        fit=fit,
        method="least-squares",
        trials=tuple(_trial(fit, i, *each) for i, each in enumerate(tried)),
        separable=False,
        before={},
        values=space.values(near.point),
        times_before=None,
        times_after=near.times,
        level=level,
        identified=tuple(known),
    )


def _trial(fit: Fit, number: int, values: Mapping[str, Any], times: Times | None) -> Trial:
    if times is None:
        try:
            times_of(fit, values)
            why = "a time is infinite"
        except (SimmodelError, ArithmeticError, ValueError, LookupError, TypeError) as error:
            why = str(error) or type(error).__name__
        return Trial(number=number, values=values, state="failed", error=why)
    return Trial(number=number, values=values, state="finished", outcome=fit.losses(times))
