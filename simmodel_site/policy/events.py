"""What happens to a cluster between two decisions of the policy: submissions, cancellations and ends of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from simmodel.scheduling import Observer, Place

if TYPE_CHECKING:
    from simmodel import Environment
    from simmodel.platform import ClusterOptions, ClusterSpec
    from simmodel.work import LiveJob, Run
    from simmodel_site.policy.holds import Records

__all__ = ["Batch", "Events"]


class Batch(Protocol):
    """A cluster."""

    @property
    def env(self) -> Environment:
        """Its environment."""
        ...

    @property
    def options(self) -> ClusterOptions:
        """Its options."""
        ...

    @property
    def spec(self) -> ClusterSpec:
        """Its spec."""
        ...


class Events(Observer):
    """The submissions and ends since the last decision: jobs that depend on others ask for none, but wake the loops."""

    def __init__(self, system: Batch, everyone: bool, records: Records) -> None:
        self._env = system.env
        self._records = records
        self._everyone = everyone
        self._back = {outage.until for outage in system.spec.outages if outage.kind == "drain"}
        self.events: list[tuple[float, Run | None]] = []
        self.submitted: list[LiveJob] = []  # the jobs that were: all, or those with options
        self.cancelled: list[LiveJob] = []

    @property
    def now(self) -> float:
        """The present instant (s)."""
        return float(self._env.now)

    def job_submitted(self, job: LiveJob, /) -> None:
        """Note when a job was submitted, and its place in the order of submissions."""
        self.events.append((float(self._env.now), None))
        self._records.arrived(int(job.seq), float(job.submit))
        if self._everyone or (job.spec is not None and job.spec.options):
            self.submitted.append(job)

    def job_cancelled(self, job: LiveJob, /) -> None:
        """Note that a job was cancelled while it waited."""
        self.cancelled.append(job)

    def place_changed(self, _place: Place, cause: str, /) -> None:
        """Note when an administrator or a repair brings nodes back; the end of a reservation asks for no run."""
        if cause == "repair" or (cause == "resume" and self._env.now in self._back):
            self.events.append((float(self._env.now), None))

    def job_ended(self, run: Run, status: str, /) -> None:
        """Note when a job ended."""
        self.events.append((float(self._env.now), run))
