"""The data sets of CGSim: events of jobs and files, or the states of jobs.

Source: CGSim, https://github.com/REDWOOD24/CGSim.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simmodel.records.grid_watch import GridWatch, RowSink
from simmodel.work.job import run_time_of

if TYPE_CHECKING:
    from simmodel.resources.data.storage import Storage
    from simmodel.resources.network.shared_channel import Access
    from simmodel.resources.network.transfer import Transfer
    from simmodel.scheduling.protocol import GridSite, MovedFile
    from simmodel.work.job import Brokered, Run

__all__ = ["CGSIM_EVENTS", "CGSIM_STATES", "CGSimEvents", "CGSimStates"]

CGSIM_EVENTS = ("EVENT", "STATE", "STATUS", "JOB_ID", "TIME", "METADATA")
"""The columns of the table ``EVENTS`` of CGSim's event level."""

CGSIM_STATES = (
    *("JOB_ID", "CPU_NAME", "STATE", "TIMESTAMP", "SITE", "AVAILABLE_SITE_CORES", "AVAILABLE_SITE_CPUS", "WORKLOAD"),
    *("NINPUT_FILES", "NOUTPUT_FILES", "INPUT_FILE_BYTES", "OUTPUT_FILE_BYTES", "SYSTEM_PENDING_JOBS"),
    *("SITE_PENDING_JOBS", "SITE_RUNNING_JOBS", "SITE_FINISHED_JOBS", "SITE_FAILED_JOBS"),
)
"""The columns of the table ``EVENTS`` of CGSim's snapshots of states."""


class CGSimEvents(GridWatch):
    """Writes the table ``EVENTS`` of CGSim's event level; parameters are a grid and the sink of the rows."""

    def __init__(self, grid: Any, sink: RowSink) -> None:
        super().__init__(grid, sink)
        self._cores = {site.name: int(site.capacity) for site in grid.places}
        self._all_cores = sum(self._cores.values())
        self._room = sum(site.storage.capacity for site in grid.places)
        self._used = sum(site.storage.used for site in grid.places)
        self._reading: dict[Any, float] = {}

    def _row(self, event: str, state: str, status: str, job: Brokered | None, **metadata: Any) -> None:
        name = "" if job is None else str(job.id)
        text = json.dumps(dict(sorted(metadata.items())), separators=(",", ":"))
        self._add("EVENTS", (event, state, status, name, float(self.env._now), text))

    def _cpu(self, site: GridSite) -> dict[str, float]:
        own = 1.0 - site.free / self._cores[site.name]
        return {"site_cpu_util": own, "grid_cpu_util": 1.0 - self.all.free / self._all_cores}

    def _storage(self, site: GridSite) -> dict[str, float]:
        return {"site_storage_util": _share(site.storage), "grid_storage_util": self._used / self._room}

    def file_added(self, _storage: Storage, _file: str, size: float, _cause: str) -> None:
        """Count the bytes in storages."""
        self._used += size

    def file_dropped(self, _storage: Storage, _file: str, size: float, _cause: str) -> None:
        """Count the bytes in storages."""
        self._used -= size

    # ------------------------------------------------------------------ jobs

    def began(self, job: Brokered, run: Run, site: GridSite) -> None:
        """Write the allocation of a job, and the start of its execution if it has no inputs."""
        where = {"site": site.name, "host": self.host(run)}
        self._row("JobAllocation", "Finished", "assigned", job, **where, **self._cpu(site), **self._storage(site))
        if not job.inputs:
            self._execution(job, run, site)

    def went_on(self, job: Brokered, site: GridSite, phase: str) -> None:
        if phase == "executing":
            self._execution(job, job.stay.run, site)

    def _speed(self, run: Run) -> float:
        return float(run.place.speed_of(run.job, run.grant.nodes) * self.grid.spec.core_speed)

    def _execution(self, job: Brokered, run: Run, site: GridSite) -> None:
        speed = self._speed(run)
        about: dict[str, Any] = {"cores": job.processors, "flops": self._flops(job), "speed": speed}
        about |= {"site": site.name, "host": self.host(run), "start_time": float(self.env._now)}
        self._row("JobExecution", "Started", "running", job, **about, **self._cpu(site))

    def _flops(self, job: Brokered) -> int:
        work: float = run_time_of(job) * job.processors * self.grid.spec.core_speed
        return round(work)

    def released(self, job: Brokered, run: Run, site: GridSite, status: str) -> None:
        """Write the end of an execution."""
        ledger, row = self.grid.ledger, job.row
        begin = ledger.executing[row]
        begin = run.started if begin != begin else begin
        good = status == "completed"
        self._row(
            "JobExecution",
            "Finished",
            "finished" if good else "failed",
            job,
            cores=job.processors,
            cost=-1.0,
            duration=float(self.env._now) - begin,
            file_transfer_queue_time=0.0,
            flops=self._flops(job),
            host=self.host(run),
            resource_waiting_queue_time=run.started - ledger.queued[row],
            retries=ledger.attempts[row] - 1,
            site=site.name,
            speed=self._speed(run),
            total_io_read_time=self._reading.pop(job, 0.0),
            total_queue_time=run.started - job.came,
            **self._cpu(site),
        )

    # ------------------------------------------------------------------ files

    def _transfer(self, fetch: MovedFile, state: str, **more: float) -> None:
        assert fetch.source is not None
        network = self.grid.data.network
        route = network.route(fetch.source.name, fetch.site.name)
        links = [network.links[name] for name in route]
        about: dict[str, Any] = {
            "file": fetch.file,
            "size": fetch.size,
            "source_site": fetch.source.name,
            "destination_site": fetch.site.name,
            "bandwidth": min((link.bandwidth for link in links), default=0.0),
            "latency": sum(link.latency for link in links),
            "link_load": max((network.load(link) for link in links), default=0.0),
            **more,
        }
        if fetch.cause in ("stage in", "stage out"):
            self._row("FileTransfer", state, "assigned", fetch.job, **about, **self._storage(fetch.site))
            return
        used = {"grid_storage_util": self._used / self._room, "Policy": fetch.cause}
        used |= {
            "src_site_storage_util": _share(fetch.source.storage),
            "dst_site_storage_util": _share(fetch.site.storage),
        }
        self._row("BackGroundFileTransfer", state, "", None, **about, **used)

    def file_transfer_started(self, fetch: MovedFile) -> None:
        self._transfer(fetch, "Started")

    def file_transfer_ended(self, fetch: MovedFile, transfer: Transfer) -> None:
        self._transfer(fetch, "Finished", duration=float(self.env._now) - transfer.start, size=transfer.done)

    def _access(self, access: Access, event: str, state: str) -> None:
        if access.about is None:
            return
        stay, file = access.about
        kind = "read" if event == "FileRead" else "write"
        about: dict[str, Any] = {"file": file, "size": access.size, "site": stay.site.name}
        about |= {"host": self.host(stay.run), "disk": stay.site.spec.storage.name or stay.site.name}
        about[f"disk_{kind}_bw"] = access.channel.bandwidth
        status = "assigned" if kind == "read" else "finished"
        if access.status == "cancelled":
            about["size"], status = access.done, "failed"
        if state == "Finished":
            about["duration"] = seconds = float(self.env._now) - access.start
            if kind == "read":
                self._reading[stay.job] = self._reading.get(stay.job, 0.0) + seconds
        if kind == "write":
            about |= self._storage(stay.site)
        self._row(event, state, status, stay.job, **about)

    def read_started(self, access: Access) -> None:
        self._access(access, "FileRead", "Started")

    def read_ended(self, access: Access) -> None:
        self._access(access, "FileRead", "Finished")

    def write_started(self, access: Access) -> None:
        self._access(access, "FileWrite", "Started")

    def write_ended(self, access: Access) -> None:
        self._access(access, "FileWrite", "Finished")


def _share(storage: Storage) -> float:
    return storage.used / storage.capacity if storage.capacity else 1.0


class CGSimStates(GridWatch):
    """Writes the table ``EVENTS`` of CGSim's snapshots of states; parameters are a grid and the sink of the rows."""

    def _row(self, job: Brokered, state: str, site: GridSite | None = None, run: Run | None = None) -> None:
        inputs, outputs = job.inputs, job.outputs
        catalogue = self.grid.data.catalogue
        flops = run_time_of(job) * job.processors * self.grid.spec.core_speed
        name, cores, counts = "", 0, [0] * 4
        if site is not None:
            at = self.at[site]
            name, cores, counts = site.name, int(site.free), [at.queued, at.running, at.finished, at.failed]
        self._add(
            "EVENTS",
            (
                *(str(job.id), self.host(run), state, float(self.env._now), name, cores, cores, flops),
                *(len(inputs), len(outputs), sum(catalogue.size(file) for file in inputs if file in catalogue)),
                *(sum(file.size for file in outputs), len(self.grid.queue), *counts),
            ),
        )

    def job_created(self, job: Brokered) -> None:
        """Write ``global_pending``: the job waits for the broker."""
        self._row(job, "global_pending")

    def job_assigned(self, job: Brokered, site: GridSite) -> None:
        """Write ``assigned``: the job has a site."""
        self._row(job, "assigned", site)

    def entered(self, job: Brokered) -> None:
        """Write ``site_pending``: the job waits in the queue of its site."""
        self._row(job, "site_pending", job.destination)

    def began(self, job: Brokered, run: Run, site: GridSite) -> None:
        """Write ``running``."""
        self._row(job, "running", site, run)

    def ended(self, job: Brokered, site: GridSite) -> None:
        """Write ``finished`` or ``failed``."""
        self._row(job, "finished" if job.state == "completed" else "failed", site)
