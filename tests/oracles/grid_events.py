"""An independent account of a grid from the rows of its event-level data set, in their order, and nothing else.

It keeps which job holds which cores, which site has which files, and what room is taken, and checks at each row that
the step is one that may follow: no job runs twice or without its files, nothing holds more than there is, and no file
is read that is not there. ``GridAccount.play(events, rows)`` raises an ``AssertionError`` or returns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from math import ceil, inf
from typing import Any

NEXT = {
    "": ("created",),
    "created": ("assigned", "rejected", "cancelled"),
    "assigned": ("staging in", "queued", "retried", "failed", "cancelled"),
    "staging in": ("queued", "retried", "failed", "cancelled"),
    "queued": ("running", "retried", "failed", "cancelled"),
    "running": ("inside", "executing", "released"),
    "inside": ("executing", "released"),
    "executing": ("released",),
    "released": ("staging out", "finished", "failed", "retried", "cancelled"),
    "staging out": ("staging out", "finished", "failed", "retried", "cancelled"),
    "retried": ("assigned", "cancelled", "failed"),
}
"""What may follow in the life of a job."""
OVER = ("finished", "failed", "rejected", "cancelled")
HOLDING = ("running", "inside", "executing")
CLOSE = 1e-6  # s, or part of a size


class _Job:
    def __init__(self, spec):
        self.spec = spec
        self.state, self.at, self.site, self.host, self.attempt = "", 0.0, "", "", 0
        self.read: list[str] = []  # in this attempt
        self.written: list[str] = []
        self.access = None  # (event, file, since) of the reading or writing under way
        self.moved = self.perhaps = 0.0  # bytes: those charged to it, and those that policies moved before it asked
        self.started = self.executing = None


class _Site:
    def __init__(self, spec):
        self.spec = spec
        self.down = self.closed = False
        self.files: dict[str, int] = {}
        self.coming: Counter[str] = Counter()  # bytes with room that are not there yet
        self.used: Counter[str] = Counter()  # cores, by host
        self.queued = self.running = self.finished = self.failed = 0
        self.speed, self.cores = {"": 1.0}, {"": spec.cores or 0}
        self.hosts = bool(spec.hosts)

    def check_room(self, where):
        taken = sum(self.files.values()) + sum(self.coming.values())
        assert taken <= self.spec.storage.capacity, (where, self.spec.name, taken, self.files, self.coming)


class GridAccount:
    """The account of a run.

    Parameters
    ----------
    spec
        the grid
    jobs
        its jobs, whose ids are numbers of their own
    hosts
        for each site the cores and the speed of each host, by name
    route
        ``route(source, destination)`` returns the names of the links between two sites
    """

    def __init__(self, spec, jobs, hosts, route):
        self.spec = spec
        self.jobs = {job.id: _Job(job) for job in jobs}
        self.sites = {site.name: _Site(site) for site in spec.sites}
        for name, found in hosts.items():
            if found:
                self.sites[name].cores = {host: cores for host, (cores, _) in found.items()}
                self.sites[name].speed = {host: speed for host, (_, speed) in found.items()}
        self.sizes = {file.name: file.size for file in spec.files}
        for file in spec.files:
            for site in file.sites:
                self.sites[site].files[file.name] = ceil(file.size)
        self.route = route
        self.now = 0.0
        self.sent: dict[tuple[str, str], tuple[str, float, str]] = {}  # file and destination: source, since, cause
        self.unclaimed: Counter[tuple[str, str]] = Counter()  # bytes that policies moved, by file and destination
        self.flows: dict[Any, list[tuple[float, float, float]]] = defaultdict(list)  # channel: start, end, bytes

    # ------------------------------------------------------------------ the rows

    def play(self, events, rows, *, whole=True):
        """Follow the events, then compare the table of jobs; ``whole``: every job has ended."""
        for row in events:
            assert row["time"] >= self.now, (self.now, row, "time goes back")
            if row["time"] > self.now:
                self.check_instant()
                self.now = row["time"]
            getattr(self, "_" + KINDS.get(row["event"], "job"))(row)
        self.check_instant()
        for channel, flows in self.flows.items():
            check_flows(channel, flows, self._bandwidth(channel))
        assert len(rows) == len({row["job"] for row in rows}), "a job has two rows"
        for row in rows:
            self._check_row(row)
        if whole:
            assert {row["job"] for row in rows} == set(self.jobs), "jobs without a row"
            assert all("stage" not in cause for *_, cause in self.sent.values()), self.sent  # a policy's may go on
            assert all(job.state in OVER for job in self.jobs.values())

    def check_instant(self):
        """Check what must hold when an instant is over."""
        for job in self.jobs.values():
            if job.site and job.state in HOLDING:
                assert not self.sites[job.site].down, (self.now, job.spec.id, "runs at a site that is down")
        for (file, name), (source, *_) in self.sent.items():
            assert not any(self.sites[each].down for each in (name, source)), (self.now, file, source, name)

    def _bandwidth(self, channel):
        kind, where = channel
        if kind == "link":
            return next(link.bandwidth for link in self.spec.network.links if link.name == where)
        storage = self.sites[where].spec.storage
        return storage.read_bandwidth if kind == "read" else storage.write_bandwidth

    # ------------------------------------------------------------------ jobs

    def _job(self, row):
        job, event = self.jobs[row["job"]], row["event"]
        where = (self.now, job.spec.id, job.state, event, row["detail"])
        assert job.spec.cancel is None or self.now <= max(job.spec.cancel, job.spec.submit), where
        if event == "staging in" and job.state == "running":
            event = "inside"
        assert event in NEXT.get(job.state, ()), where
        if event not in ("created", "assigned", "rejected"):
            assert row["site"] == job.site or not row["site"], where
        before, job.state = job.state, event
        site = self.sites.get(row["site"])
        step = getattr(self, "_" + event.replace(" ", "_"), None)
        if step is not None:
            step(job, site, row, before, where)
        if event != "rejected":
            assert row["attempt"] == job.attempt, where
        if site is not None:
            self._check_counts(site, row, where)
        if event in ("retried", *OVER):
            assert job.access is None, where
            assert event == "finished" or event == "cancelled" or row["detail"], where
            job.site = job.host = ""
            job.read, job.written = [], []

    def _check_counts(self, site, row, where):
        found = row["queued"], row["running"], row["finished"], row["failed"]
        assert found == (site.queued, site.running, site.finished, site.failed), (*where, found, vars(site))
        free = 0 if site.down else sum(site.cores.values()) - sum(site.used.values())
        assert row["free_cores"] == free, (*where, row["free_cores"], free)

    def _created(self, job, _site, row, _before, where):
        assert row["time"] == job.spec.submit, where
        job.at = self.now

    def _assigned(self, job, site, row, _before, where):
        assert not site.down, where
        assert not site.closed, where
        job.attempt += 1
        assert job.attempt <= self.spec.retries + 1, where
        job.site = row["site"]
        job.started = job.executing = None

    def _queued(self, job, site, _row, _before, where):
        assert not site.down, where
        site.queued += 1

    def _running(self, job, site, row, _before, where):
        assert not site.down, where
        site.queued -= 1
        site.running += 1
        job.host = row["host"]
        assert bool(job.host) == site.hosts, where
        site.used[job.host] += job.spec.processors
        assert site.used[job.host] <= site.cores[job.host], (*where, site.used)
        job.started = self.now
        if not job.spec.inputs:
            job.executing = self.now

    def _staging_in(self, job, _site, _row, _before, _where):
        """Note what policies have moved before: the first job that asks for it there pays, unless it fails before."""
        names = {*job.spec.inputs, *(file.name for file in job.spec.outputs)}
        job.perhaps += sum(size for (file, _), size in self.unclaimed.items() if file in names)

    _inside = _staging_out = _staging_in

    def _executing(self, job, site, _row, before, where):
        assert job.read == list(job.spec.inputs), (*where, job.read)
        assert job.access is None, where
        assert before == ("inside" if site.spec.staging == "inside" else "running"), where
        job.executing = self.now

    def _released(self, job, site, row, before, where):
        site.running -= 1
        site.used[job.host] -= job.spec.processors
        if row["detail"] in ("completed", "timeout"):
            assert before == "executing" or not job.spec.inputs, where
            lasts = job.spec.run / site.speed[job.host]
            assert abs(self.now - job.executing - lasts) <= CLOSE * max(1.0, self.now), (*where, job.executing, lasts)

    def _retried(self, job, site, _row, before, where):
        site.queued -= before == "queued"

    def _cancelled(self, job, site, _row, before, where):
        if site is not None:
            site.queued -= before == "queued"

    def _failed(self, job, site, _row, before, where):
        site.queued -= before == "queued"
        site.failed += 1

    def _finished(self, job, site, _row, before, where):
        site.finished += 1
        assert before == "released" or job.spec.outputs, where
        assert job.written == [file.name for file in job.spec.outputs], (*where, job.written)
        for file in job.spec.outputs:
            assert any(file.name in each.files for each in self.sites.values()), (*where, file)

    # ------------------------------------------------------------------ files

    def _size(self, file, job=None):
        outputs = () if job is None else job.spec.outputs
        return next((each.size for each in outputs if each.name == file), self.sizes.get(file, 0.0))

    def _transfer(self, row):
        file, site, key = row["file"], self.sites[row["site"]], (row["file"], row["site"])
        where, source = (self.now, row), self.sites[row["source"]]
        if row["event"] == "transfer started":
            assert key not in self.sent, where
            assert file in source.files, where
            assert file not in site.files, where
            assert source is not site, where
            assert row["bytes"] == self.sizes[file], where
            self.sent[key] = row["source"], self.now, row["detail"]
            site.coming[file] += ceil(row["bytes"])
            site.check_room(where)
            return
        name, since, _ = self.sent.pop(key)
        assert name == row["source"], where
        assert file in source.files, where
        for link in self.route(name, row["site"]):
            self.flows["link", link].append((since, self.now, row["bytes"]))
        del site.coming[file]
        if row["detail"] == "failed":
            assert row["bytes"] <= self.sizes[file], where
            return
        assert row["bytes"] == self.sizes[file], where
        site.files[file] = ceil(row["bytes"])
        if row["job"] == "":
            self.unclaimed[key] += row["bytes"]
        else:
            self.jobs[row["job"]].moved += row["bytes"]

    def _access(self, row):
        job, file, site = self.jobs[row["job"]], row["file"], self.sites[row["site"]]
        where, (kind, what) = (self.now, row, vars(job)), row["event"].split()
        assert row["site"] == job.site, where
        if kind == "read":
            assert job.state in ("running", "inside"), where
            assert file in site.files, where
        else:
            assert job.state == "staging out", where
        if what == "started":
            assert job.access is None, where
            assert row["bytes"] == self._size(file, job if kind == "write" else None), where
            job.access = kind, file, self.now
            if kind == "write" and file not in site.files:
                site.coming[file] += ceil(row["bytes"])
                site.check_room(where)
            return
        before, name, since = job.access
        assert (before, name) == (kind, file), where
        job.access = None
        self.flows[kind, row["site"]].append((since, self.now, row["bytes"]))
        if kind == "write":
            site.coming.pop(file, None)
        if row["detail"] == "failed":
            assert row["bytes"] <= self._size(file, job if kind == "write" else None), where
        elif kind == "read":
            assert row["bytes"] == self.sizes[file], where
            job.read.append(file)
        else:
            assert row["bytes"] == self._size(file, job), where
            job.written.append(file)
            if file not in site.files:
                self.sizes[file] = row["bytes"]
                site.files[file] = ceil(row["bytes"])

    def _evicted(self, row):
        where, file, site = (self.now, row), row["file"], self.sites[row["site"]]
        assert site.files.pop(file) == ceil(row["bytes"]), where
        for job in self.jobs.values():
            assert job.access is None or job.site != row["site"] or job.access[1] != file, (where, vars(job))
        for name, (source, *_) in self.sent.items():
            assert (name[0], source) != (file, row["site"]), where
        if "last" not in row["detail"]:
            assert any(file in each.files for each in self.sites.values()), where

    # ------------------------------------------------------------------ sites

    def _outage(self, row):
        site = self.sites[row["site"]]
        planned = [each for each in self.spec.outages if each.site == row["site"]]
        for kind in ("down", "closed"):
            now = any(each.kind == kind and each.at <= self.now < each.until for each in planned)
            if row["event"] in SWITCHES[kind]:
                assert now or not row["event"].endswith(kind), (self.now, row)
                setattr(site, kind, row["event"].endswith(kind) or now)

    # ------------------------------------------------------------------ the table of jobs

    def _check_row(self, row):
        job = self.jobs[row["job"]]
        where = (row, vars(job))
        assert job.state == row["state"], where
        assert row["attempts"] == job.attempt, where
        assert row["reason"] or row["state"] in ("finished", "cancelled"), where
        assert row["submit"] == job.spec.submit, where
        if row["state"] == "finished":
            assert row["queue_time"] == job.started - job.spec.submit, where
        assert job.moved <= row["bytes_in"] <= job.moved + job.perhaps, where


KINDS = dict.fromkeys(("transfer started", "transfer ended"), "transfer")
KINDS |= dict.fromkeys(("read started", "read ended", "write started", "write ended"), "access")
KINDS |= dict.fromkeys(("site down", "site up", "site closed", "site reopened"), "outage") | {"evicted": "evicted"}
SWITCHES = {"down": ("site down", "site up"), "closed": ("site closed", "site reopened")}


def check_flows(channel, flows, bandwidth):
    """Check that no time from a start to an end holds more bytes than the bandwidth carries."""
    if bandwidth == inf:
        return
    ends = sorted((end, start, size) for start, end, size in flows)
    last = [end for end, _, _ in ends]
    for begin in {start for start, _, _ in flows}:
        inside = 0.0
        for end, start, size in ends[bisect_left(last, begin) :]:
            if start >= begin:
                inside += size
                most = bandwidth * (end - begin + 1e-9) + CLOSE * max(1.0, inside)
                assert inside <= most, (channel, begin, end, inside, bandwidth)


class Rows:
    """Takes the rows of a data set in memory, as dictionaries.

    Parameters
    ----------
    tables
        the columns of each table
    """

    def __init__(self, tables):
        self.columns = {name: (name, tuple(columns), {}) for name, columns in tables.items()}
        self.tables = {name: [] for name in tables}

    def shorten(self, form, table, values):
        columns = tuple(name for name in self.columns[table][1] if name not in values)
        self.columns[form] = table, columns, dict(values)

    def add(self, form, row):
        table, columns, values = self.columns[form]
        self.tables[table].append({**values, **dict(zip(columns, row, strict=True))})
