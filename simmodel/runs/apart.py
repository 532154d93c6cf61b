"""One run in several processes: the places of a broker that looks at none of them are simulated apart."""

from __future__ import annotations

import pickle
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simmodel.foundation.errors import InputError, SimmodelError, shown
from simmodel.foundation.workers import map_on, stop_workers, worker_pool
from simmodel.systems.broker.core import BrokerCore

if TYPE_CHECKING:
    from simmodel.results.result import Result
    from simmodel.runs.simulation import Simulation
    from simmodel.systems.broker.core import Part
    from simmodel.systems.destination import Destination

__all__ = ["run_apart", "simulate_share"]


class Startable(Protocol):
    """What can be run in several processes: a :class:`~simmodel.runs.scenario.Scenario`."""

    def start(self, *, name: str | None = None) -> Simulation:
        """Return a simulation, ready to run."""
        ...

    def evolve(self, changes: None = None, /, *, seed: int) -> Startable:
        """Return the same with another seed."""
        ...


def run_apart(scenario: Startable, processes: int, *, progress: bool = False, name: str | None = None) -> Result:
    """Run a scenario of a broker in several processes, of which this is one; the record is that of one process.

    Each process makes all choices of the broker, and simulates the jobs of its own places; parameters as of
    :func:`~simmodel.runs.scenario.simulate`.

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
        raise InputError(f"must be 1: the places of {broker.name} depend on each other: {reason}", place="processes")
    shares: list[list[Destination]] = [[] for _ in range(min(processes, len(broker.places)))]
    for place in sorted(broker.places, key=lambda place: -place.capacity):
        min(shares, key=lambda share: sum(each.capacity for each in share)).append(place)
    own, *others = [[place.name for place in share] for share in shares]
    try:
        sent = pickle.dumps(scenario.evolve(seed=broker.env.seed), protocol=5)
    except Exception as error:
        raise InputError(f"must be 1: the scenario cannot be sent: {error}", place="processes") from None
    pool = worker_pool(max(1, len(others)))  # its processes begin with their first task
    try:
        parts = map_on(pool, simulate_share, [(sent, names) for names in others])
        broker.keep_share(own, first=True)
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


def simulate_share(task: tuple[bytes, list[str]]) -> Part:
    """Simulate the places with some names of a pickled scenario; return their part of the record."""
    sent, names = task
    simulation = pickle.loads(sent).start()
    broker: BrokerCore = simulation.system
    chosen = broker.keep_share(names, first=False)
    simulation.run()
    numbers = [i for i, place in enumerate(broker.places) if place.name in names]
    return broker.part(names, np.flatnonzero(np.isin(chosen, numbers)))
