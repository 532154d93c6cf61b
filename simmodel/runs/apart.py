"""One run in several processes: the places of a broker that looks at none of them are simulated apart."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, SimmodelError, shown
from simmodel.foundation.workers import map_on, stop_workers, worker_pool
from simmodel.runs.simulation import Simulation
from simmodel.systems.broker.apart import keep_share
from simmodel.systems.broker.core import BrokerCore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.results.result import Result
    from simmodel.runs.scenario import Scenario
    from simmodel.systems.broker.apart import Part

__all__ = ["run_apart", "simulate_share"]


def run_apart(scenario: Scenario, processes: int, *, progress: bool = False, name: str | None = None) -> Result:
    """Run a scenario of a broker in several processes; the record is that of one process.

    Each process makes all choices of the broker, and simulates the jobs of its own places.

    Parameters
    ----------
    scenario
        of a broker or a grid
    processes
        at most as many as there are places; this process is one of them
    progress
        whether to show a progress bar: of the jobs that this process simulates
    name
        as for :func:`~simmodel.runs.simulating.simulate`

    Raises
    ------
    InputError
        the places depend on each other, or the scenario cannot be sent to other processes
    SimmodelError
        a process was killed
    """
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise InputError(f"must be a whole number >= 1, got {shown(processes)}", place="processes")
    simulation = scenario.start(name=name)
    broker = simulation.system
    if not isinstance(broker, BrokerCore):
        raise InputError(f"must be 1 for a {broker.kind}, which is simulated as a whole", place="processes")
    reason = broker.why_coupled()
    if reason is None and broker.endless and simulation.until is None:
        reason = "some have outages or failures, which go on until the whole run ends (until= says when)"
    if reason is not None:
        message = f"must be 1: the places of {broker.name} depend on each other: {reason}"
        raise InputError(message, place="processes")
    own, *others = _shares(broker, processes)
    if not others:
        whole: Result = scenario.run(progress=progress, name=name)
        return whole
    seeded = attrs.evolve(scenario, seed=broker.env.seed)
    try:
        sent = pickle.dumps(seeded, protocol=5)
    except Exception as error:
        raise InputError(f"must be 1: the scenario cannot be sent: {error}", place="processes") from None
    pool = worker_pool(len(others))
    try:
        parts = map_on(pool, simulate_share, [(sent, each) for each in others])
        keep_share(broker, own, first=True)
        if progress:
            simulation.show_progress(", ".join(own), broker.unfinished)
        simulation.run()
        broker.join(list(parts))
    except BrokenExecutor:
        message = "a process that simulated some of its places was killed, or could not start (below a script's "
        raise SimmodelError(f'{broker.name}: {message}if __name__ == "__main__")') from None
    except SimmodelError as error:
        raise error from None  # without the traceback of another process
    finally:
        stop_workers(pool)
    result: Result = simulation.result()
    return result


def _shares(broker: BrokerCore, processes: int) -> list[list[str]]:
    """Return the names of the places of each process, whose processors are about the same."""
    shares: list[list[str]] = [[] for _ in range(min(processes, len(broker.places)))]
    sizes = [0] * len(shares)
    for place in sorted(broker.places, key=lambda place: -place.capacity):
        least = sizes.index(min(sizes))
        shares[least].append(place.name)
        sizes[least] += place.capacity
    return shares


def simulate_share(task: tuple[bytes, Sequence[str]]) -> Part:
    """Simulate some places in this process."""
    sent, mine = task
    scenario: Scenario = pickle.loads(sent)
    simulation: Simulation = scenario.start()
    broker = simulation.system
    assert isinstance(broker, BrokerCore)
    chosen = keep_share(broker, mine, first=False)
    simulation.run()
    numbers = [i for i, place in enumerate(broker.places) if place.name in mine]
    rows: NDArray[np.int64] = np.flatnonzero(np.isin(chosen, numbers))
    return broker.part(mine, rows)
