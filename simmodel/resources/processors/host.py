"""Hosts whose cores are time-shared by any number of computations; the solver of networks, with the cores as link."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import parse_quantity
from simmodel.resources.network.flow import Bundle, Channel, Flow
from simmodel.resources.network.fluid import Fluid

__all__ = ["Executed", "Execution", "Host"]


class Executed(NamedTuple):
    """The value of a completed execution: its start and end (s), and its flop.

    >>> Executed(start=0.0, end=10.0, flop=1e9).end
    10.0
    """

    start: float
    end: float
    flop: float


class Execution(Flow):
    """A computation in flight: an event that happens when its last operation is done; its value is :class:`Executed`.

    ``cancel()``, ``pause()``, ``resume()`` and a ``with`` block work as for a transfer; its ``weight`` is its priority.

    >>> env = Environment(); execution = Host(env, 100.0).execute(1000.0)
    >>> env.run(until=4); execution.flop_done, execution.rate
    (400.0, 100.0)
    """

    @property
    def flop_done(self) -> float:
        """Operations done so far."""
        return self.done

    def _result(self) -> Executed:
        return Executed(self.start, self.env._now, self.size)


class Host(Fluid):
    """Time-shared cores: each computation gets a share by its priority, at most one core.

    Parameters
    ----------
    env
        the environment
    speed
        flop/s of one core, or a text such as ``"1Gf"``
    cores
        their number
    name
        its name

    Raises
    ------
    InputError
        the speed is not > 0, or the cores are not a whole number >= 1

    Its hooks for observers are ``execution_started(execution)``, ``execution_ended(execution)`` and
    ``host_load_changed(channel)``, with the host's name, capacity and load (flop/s).

    >>> env = Environment()
    >>> host = Host(env, "100f", cores=4)
    >>> tasks = [host.execute(1000) for _ in range(8)]
    >>> env.run(tasks[0]).end
    20.0
    """

    kind = "execution"
    unit = "flop"
    carrier = "host"

    def __init__(self, env: Environment, speed: float | str, cores: int = 1, name: str = "host") -> None:
        self.name = name
        if cores != int(cores) or cores < 1:
            raise InputError(f"must be a whole number >= 1, got {cores!r}", place=f"host {name}, cores")
        self.cores = int(cores)
        self.speed = self._read_speed(speed)
        self.channel = Channel(name, self.speed * self.cores)
        self._bundles: dict[float, Bundle] = {}
        super().__init__(env)

    def _read_speed(self, speed: float | str) -> float:
        value = parse_quantity(speed, "flop/s", place=f"host {self.name}, speed")
        if value <= 0:
            raise InputError(f"must be > 0, got {speed!r}", place=f"host {self.name}, speed")
        return value

    def execute(self, flop: float | str, *, priority: float = 1.0) -> Execution:
        """Start a computation and return the event of its end.

        Parameters
        ----------
        flop
            operations, or a text such as ``"2Gf"``
        priority
            > 0: its share relative to others

        Raises
        ------
        InputError
            a value is out of range or not a quantity

        >>> env = Environment(); host = Host(env, 100.0)
        >>> low, high = host.execute(1000), host.execute(750, priority=3)
        >>> env.run(low & high).todict()[high].end, low.end
        (10.0, 17.5)
        """
        size = parse_quantity(flop, "flop", place=f"execution on host {self.name}")
        if not 0 < priority < inf:
            raise InputError(f"must be finite and > 0, got {priority!r}", place=f"host {self.name}, priority")
        execution = Execution(self, self._next_number(), size, float(priority))
        self._under_way[execution] = None
        for call in self._on_start:
            call(execution)
        if execution.status == "waiting":
            self.go_on(execution)
        return execution

    def go_on(self, flow: Flow) -> None:
        """Start a computation, or continue one that was paused."""
        if not flow.kept:
            flow.finish()
            return
        bundle = self._bundles.get(flow.weight)
        if bundle is None:
            uses = ((self.channel, 1.0),)
            bundle = Bundle(uses, cap=self.speed, unit=flow.weight, number=self._next_number())
            self._bundles[flow.weight] = bundle
        self._enter(flow, bundle)
        self._settle_at_end()

    def _last_out(self, bundle: Bundle) -> None:
        # The number of different priorities is unbounded: drop empty bundles.
        del self._bundles[bundle.unit]

    def set_speed(self, speed: float | str) -> None:
        """Change the speed of the cores from now on (flop/s, > 0).

        >>> env = Environment(); host = Host(env, 100.0); execution = host.execute(1000)
        >>> env.run(until=5); host.set_speed("250f"); env.run(); env.now
        7.0
        """
        self.speed = self._read_speed(speed)
        self.channel.bound = self.speed * self.cores
        self._capacity_changed(self.channel, True)
        for bundle in self._bundles.values():
            bundle.cap = self.speed
            self._rescale(bundle, bundle.scale)

    def __repr__(self) -> str:
        return f"<Host {self.name}: {self.cores} cores of {self.speed:g} flop/s>"
