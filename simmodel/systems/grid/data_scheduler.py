"""The data scheduler of a grid: it asks the data policy, and carries out its transfers and evictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from simmodel.environment import WAKE_UP
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.policies.data import DataPolicy, described, made_of
from simmodel.scheduling.checks import misreturned, why_not_at
from simmodel.scheduling.protocol import DataView, Evict, Transfer, WakeAt
from simmodel.scheduling.registry import PolicyLike, policy as policy_of, unused
from simmodel.scheduling.scheduler import check_decides
from simmodel.snapshots.grid import AssignedState, DataPolicyState
from simmodel.snapshots.snapshot import PolicyState
from simmodel.systems.policy_state import plain_state, recall

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from simmodel.environment import Call, Environment
    from simmodel.resources.data.storage import Storage
    from simmodel.systems.grid.data import DataManager
    from simmodel.systems.grid.site import Site
    from simmodel.work.job import Brokered

__all__ = ["DataScheduler", "chosen_data_policy"]


class Owner(Protocol):
    """The grid whose files a policy moves."""

    env: Environment
    name: str
    rank: int
    places: tuple[Site, ...]
    data: DataManager
    queue: Any


def chosen_data_policy(state: DataPolicyState, given: PolicyLike | None) -> PolicyLike:
    """Return the data policy to continue with: the given one without its memory, or else that of a snapshot.

    Raises
    ------
    InputError
        if none is given and that of the snapshot was passed as an object of a class of a script
    """
    if given is not None:
        return unused(given)
    if state.policy.known_as is not None:
        return state.policy.known_as
    if state.made is None:
        message = f"{state.policy.name!r} was passed as an object: pass it again to continue from the snapshot"
        raise InputError(message, place="data")
    try:
        return made_of(state.made)
    except InputError as error:
        raise InputError(error.message, place="data.made") from None


class EndedJob:
    """A job that has ended, with the fields that a data policy may still read: its id and its inputs."""

    __slots__ = ("id", "inputs")

    def __init__(self, id: int | str, inputs: tuple[str, ...]) -> None:
        self.id = id
        self.inputs = inputs

    @property
    def needs_files(self) -> bool:
        return bool(self.inputs)


class DataScheduler:
    """Asks a data policy at the end of each instant in which a job was assigned, a file came, or a site came back.

    Parameters
    ----------
    grid
        the grid
    policy
        a name, a data policy, or a function of a view
    begin
        whether it is asked at once, about all files

    Attributes
    ----------
    policy, known_as, view
        the policy; the name by which it was passed, ``None``: an object; its view
    alarms
        its planned wake-ups, by instant (s)
    """

    def __init__(self, grid: Owner, policy: PolicyLike, *, begin: bool = True) -> None:
        self.grid = grid
        self.env = grid.env
        self.view = DataView(grid.env, grid.places, grid.data.catalogue, grid.queue, f"{grid.name}.data")
        self.alarms: dict[float, Call] = {}
        self._wake = grid.env.at_instant_end(self._decide, grid.rank + 0.5)  # after the broker
        self._watches = False
        self._active = False
        self.use(policy, begin=begin)

    def use(self, policy: PolicyLike, *, begin: bool = True) -> None:
        """Have another policy decide from now on; without ``begin``, once something happens."""
        chosen = policy_of(policy)
        self.known_as = policy if isinstance(policy, str) else None
        check_decides(chosen, ("data",), "the data manager of a grid")
        self.policy: Any = chosen
        chosen.attach(self.grid)
        for alarm in self.alarms.values():
            self.env.withdraw(alarm)
        self.alarms.clear()
        data = self.grid.data
        if isinstance(chosen, DataPolicy) and type(chosen) is not DataPolicy:
            data.choose, data.send_outputs = self._source, chosen.target
        else:
            data.use_defaults()
        self._active = type(chosen).decide is not DataPolicy.decide
        if self._active:
            if not self._watches:
                self._watches = True
                self.env.observe(self)
            if begin:
                self.view.forget()
                self.view.added.extend(data.catalogue.names())
                self._wake()

    @property
    def due(self) -> bool:
        """Whether the policy is to be asked at this instant."""
        return self._wake.armed

    def state(self, known: Container[Any]) -> DataPolicyState:
        """Return the policy with its memory, and its undecided jobs and files; ``known``: the jobs that have not ended.

        Raises
        ------
        SnapshotError
            if the memory of the policy does not consist of plain values
        """
        policy, view = self.policy, self.view
        return DataPolicyState(
            PolicyState(policy.name, self.known_as, plain_state(policy), self.due),
            described(policy) if self.known_as is None else None,
            tuple(sorted(self.alarms)),
            tuple(
                AssignedState(
                    job.row if job in known else None, site.number, job.id, tuple(job.inputs) if job.needs_files else ()
                )
                for job, site in view.assigned
            ),
            tuple(view.added),
        )

    def restore(self, state: DataPolicyState, chosen: PolicyLike, jobs: Mapping[int, Any]) -> None:
        """Restore the memory of the chosen policy, if it has the same name; another one begins anew.

        ``jobs``: the unfinished jobs by their rows in the snapshot.
        """
        if self.policy.name != state.policy.name:
            self.use(chosen)
            return
        recall(self.policy, state.policy, "data.policy.state")
        for row, site, name, inputs in state.assigned:
            job = EndedJob(name, inputs) if row is None else jobs[row]
            self.view.assigned.append((job, self.grid.places[site]))
        self.view.added.extend(state.added)
        for at in state.alarms:
            self._wake_at(at)
        if state.policy.due:
            self._wake()

    def _source(self, file: str, size: float, sources: list[Site], site: Site) -> Site:
        """Return the policy's choice of a source, which must be one of them."""
        policy = self.policy
        found: Site = policy.source(file, size, sources, site)
        if not any(found is each for each in sources):
            names = ", ".join(each.name for each in sources)
            message = f"source: must be one of the sites with the file ({names}), got {found!r}"
            raise PolicyError(message, policy.name, f"file {file}", site.name, float(self.env.now))
        return found

    # ------------------------------------------------------------------ what it hears

    def job_assigned(self, job: Brokered, site: Site) -> None:
        if self._active and getattr(site, "system", None) is not None and site in self.grid.places:
            self.view.assigned.append((job, site))
            self._wake()

    def file_added(self, storage: Storage, file: str, _size: float, _cause: str) -> None:
        if self._active and self._is_ours(storage):
            self.view.added.append(file)
            self._wake()

    def site_up(self, site: Site) -> None:
        """Ask the policy, which may have waited for a site."""
        if self._active and site in self.grid.places:
            self._wake()

    def _is_ours(self, storage: Storage) -> bool:
        """Whether a storage is of this grid: several may share an environment."""
        site = self.grid.data.by_name.get(storage.name)
        return site is not None and site.storage is storage

    # ------------------------------------------------------------------ decisions

    def _decide(self) -> None:
        if not self._active:
            return
        policy, view = self.policy, self.view
        decisions: Any = policy.decide(view)
        reason = None if decisions is None else misreturned(decisions, (Transfer, Evict, WakeAt))
        if reason is not None:
            raise self._error(reason)
        for decision in decisions or ():
            self._carry(decision)
        view.forget()

    def _carry(self, decision: Any) -> None:
        """Carry out a decision, or raise why this is impossible."""
        data = self.grid.data
        file, place, reason = "", None, None
        if isinstance(decision, WakeAt):
            reason = why_not_at(decision.at, self.env.now)
            if reason is None:
                self._wake_at(decision.at)
        elif isinstance(decision, Transfer):
            file, place = decision.file, decision.destination
            reason = self._why_unknown(place, decision.source)
            if reason is None and decision.mode not in ("copy", "move"):
                reason = f"mode: must be 'copy' or 'move', got {decision.mode!r}"
            reason = reason or data.transfer(file, decision.source, place, decision.mode, self.policy.name)
        elif isinstance(decision, Evict):
            file, place = decision.file, decision.place
            reason = self._why_unknown(place) or data.evict(file, place, last=decision.last)
        else:
            reason = f"decisions must be Transfer, Evict, WakeAt, got {decision!r}"
        if reason is not None:
            raise self._error(reason, f"file {file}" if file else "", getattr(place, "name", str(place or "")))

    def _why_unknown(self, *sites: Any) -> str | None:
        wrong: Sequence[Any] = [site for site in sites if site is not None and site not in self.grid.places]
        return f"must name a site of this grid, got {wrong[0]!r}" if wrong else None

    def _error(self, message: str, file: str = "", place: str = "") -> PolicyError:
        return PolicyError(message, self.policy.name, file, place, float(self.env.now))

    def _wake_at(self, at: float) -> None:
        if at not in self.alarms and at < float("inf"):
            self.alarms[at] = self.env.call_at(at, lambda: self._alarm(at), what=WAKE_UP)

    def _alarm(self, at: float) -> None:
        self.alarms.pop(at, None)
        self._wake()
