"""The places of a cluster as Slurm knows them: a board of the nodes of each, and its partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel import InputError
from simmodel.extending import Allocation, NodeTable, Request, node_names
from simmodel.resources import NodePool
from simmodel_site.policy.board import Board, Held, Kept, Site
from simmodel_site.policy.layout import Layout, SlurmSwitch
from simmodel_site.policy.settings import YEAR, SlurmPartition
from simmodel_site.policy.wishes import wishes_of

if TYPE_CHECKING:
    from simmodel.resources import Pool
    from simmodel.work import LiveJob
    from simmodel_site.policy.layout import SlurmNodes
    from simmodel_site.policy.reservations import SlurmReservation
    from simmodel_site.policy.settings import SlurmConf

__all__ = ["SlurmPlaces", "request_of", "table_of", "windows_of"]


class SlurmPlaces:
    """The boards and the partitions of the places at which jobs have arrived.

    Parameters
    ----------
    settings, partitions, nodes, switches, reservations
        those of the policy

    Raises
    ------
    InputError
        two reservations have one name

    Attributes
    ----------
    boards
        the board of each place: of its nodes, or of as many nodes of one core as it has processors
    reservations
        the reservations by name
    """

    def __init__(
        self,
        settings: SlurmConf,
        partitions: Sequence[SlurmPartition],
        nodes: Sequence[SlurmNodes],
        switches: Sequence[SlurmSwitch],
        reservations: Sequence[SlurmReservation] = (),
    ) -> None:
        self.reservations = {each.name: each for each in reservations}
        if len(self.reservations) < len(reservations):
            raise InputError("a name is given twice", place="reservations")
        self._settings = settings
        self._partitions = partitions
        self._nodes = nodes
        self._switches = tuple(switches)
        self.boards: dict[Pool, Board] = {}
        self._sites: dict[Pool, dict[str, Site]] = {}
        self._states: list[tuple[int | None, ...]] = []  # of nodes: those that sleep, and those that boot

    @property
    def names(self) -> list[str]:
        return [name for sites in self._sites.values() for name in sites]

    @property
    def counted(self) -> bool:
        """Whether all places have processors that are counted, not nodes."""
        return not any(isinstance(place, NodePool) for place in self.boards)

    def board(self, place: Pool) -> Board:
        """Return the board of a place."""
        board = self.boards.get(place)
        if board is None:
            sleeps = place.sleeping is not None
            board = self.boards[place] = Board(table_of(place), self._settings, self._layout(place), sleeps=sleeps)
            if isinstance(place, NodePool):
                board.accepts = lambda job, allocation: place.accepts(job.job, allocation)
            else:
                board.accepts = lambda job, allocation: place.fits(job.job)
            if self.reservations and isinstance(place, NodePool):
                board.kept = Kept([*self.reservations.values()], place.nodes, board.table.capacity[0].tolist())
            self._sites[place] = {site.spec.name: site for site in self._sites_of(place)}
        return board

    def sleep(self) -> bool:
        """Note which nodes sleep and boot; return whether they are others than before."""
        dozing = [(board, place.sleeping) for place, board in self.boards.items() if place.sleeping is not None]
        states = [(*each.asleep, None, *each.booting) for _, each in dozing]
        if states == self._states:
            return False
        self._states = states
        for board, each in dozing:
            board.layout.sleep(sum(1 << node for node in each.asleep))
        return True

    def sites(self, job: LiveJob, place: Pool) -> list[Site]:
        """Return the partitions of a job at a place: those of its options, or that of its queue, or the default one."""
        sites = self._sites[place]
        names = wishes_of(job).partitions or (str(job.queue),)
        found = [sites[name] for name in names if name in sites]
        usual = [each for each in sites.values() if each.spec.default] or list(sites.values())
        return found or usual[:1]

    def reservation(self, job: LiveJob) -> SlurmReservation | None:
        """Return the reservation that a job is for, if it is one of the policy."""
        return self.reservations.get(wishes_of(job).reservation)

    def notes(self) -> Iterator[str]:
        """Yield which reservations have no nodes."""
        known = {name for place in self.boards if isinstance(place, NodePool) for name in place.nodes}
        for each in self.reservations.values() if self.boards else ():
            missing = [name for name in node_names(each.nodes) if name not in known]
            if missing:
                yield f"leaves out {missing[0]} of reservation {each.name}: there is no such node"

    def _layout(self, place: Pool) -> Layout:
        """Return the weights, features and switches of the nodes of a place."""
        table, names = table_of(place), place.nodes if isinstance(place, NodePool) else ()
        switches = self._switches if self._settings.tree else ()
        if self._settings.tree and not switches and table.switches is not None:
            below: dict[int, list[str]] = {}
            for name, number in zip(names, table.switches.tolist(), strict=True):
                below.setdefault(number, []).append(name)
            switches = tuple(
                SlurmSwitch(name=f"leaf{i}", nodes=",".join(each)) for i, each in enumerate(below.values())
            )
            switches += (SlurmSwitch(name="top", switches=",".join(each.name for each in switches)),)
        return Layout(names, len(table), self._nodes, switches)

    def _sites_of(self, place: Pool) -> Iterator[Site]:
        own = place.nodes if isinstance(place, NodePool) else []
        number = {name: i for i, name in enumerate(own)}
        everything = (1 << max(len(own), place.capacity)) - 1
        usual = SlurmPartition(name=place.name, default=True)
        for each in self._partitions or (usual,):
            listed = sum(1 << number[name] for name in node_names(each.nodes) if name in number)
            if listed or not each.nodes:
                yield Site(each, listed or everything)


def request_of(job: LiveJob, place: Pool) -> Request:
    """Return what a job asks of a place."""
    return place.request_for(job) if isinstance(place, NodePool) else job.request or Request(job.processors)


def table_of(place: Pool) -> NodeTable:
    """Return the table of the nodes of a place, or of as many free nodes of one core as it has processors."""
    return place.table if isinstance(place, NodePool) else NodeTable(np.ones((3, place.capacity)))


def windows_of(place: Pool, count: int, now: float) -> tuple[list[Held], list[tuple[int, int, int]]]:
    """Return the nodes that are away until a known instant, as if a job had them, and future absences.

    These are reservations and maintenance. Of counted processors, the last ones are away.

    Parameters
    ----------
    count
        the number of nodes of its board
    now
        the present instant (s)
    """
    away, coming = [], []
    for window in place.windows:
        nodes = tuple(window.what) if isinstance(place, NodePool) else tuple(range(count - int(window.what), count))
        end = ceil(min(window.end, now + 10.0 * YEAR))
        if window.begun and isinstance(place, NodePool) and window.end < inf:
            away.append(Held.of(end, -1, Allocation.away(nodes)))
        elif not window.begun:
            coming.append((int(window.start), end, sum(1 << node for node in nodes)))
    return away, coming
