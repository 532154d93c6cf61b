"""Unkind grids: full storages, files that fit nowhere, outages at the instants of starts, sites that never return."""

from math import inf

import attrs
import numpy as np
import pytest

from simmodel import Job, start
from simmodel.foundation.errors import Stalled
from simmodel.platform import (
    DelaySpec,
    FileSpec,
    GridSpec,
    LinkSpec,
    NetworkSpec,
    NodeSpec,
    SiteOutageSpec,
    SiteSpec,
    StorageSpec,
)
from simmodel.policies.data import DataPolicy, Replicate, Subscribe
from simmodel.records.grid_events import GRID_EVENTS, GRID_JOBS, GridEvents
from simmodel.scheduling.protocol import Evict, Transfer
from simmodel.work import Dependency, File
from tests.oracles.grid_events import OVER, GridAccount, Rows

BROKERS = (
    *("round-robin", "random", "share(0.6)", "shares", "siloed", "recorded", "least-loaded", "data-locality"),
    *(
        "shortest-wait",
        "earliest-finish",
        "earliest-start",
        "panda",
        "sgs-t",
        "sgs-w",
        "min-min",
        "max-min",
        "sufferage",
    ),
)
NEVER_BACK = 0.02


class Restless(DataPolicy):
    """Sends outputs to other sites, and moves and drops files as they come."""

    def target(self, file, site):
        """Return a site that depends on the name only."""
        places = self.grid.places
        return places[(len(file) + int(file[1:])) % len(places)]

    def decide(self, view):
        """Move each second file that comes, and drop each third."""
        for number, file in enumerate(view.added):
            held = [site for site in view.sites if file in site.storage.files]
            others = [site for site in view.sites if site not in held and not site.down]
            if number % 2 and held and others:
                source = held[0] if len(held) == 1 and others[0].seconds_to(file, others[0]) < inf else None
                yield Transfer(file, source, others[0], "move")
            elif number % 3 == 0 and len(held) > 1 and held[-1].storage.why_keep(file) is None:
                yield Evict(file, held[-1])


def unkind(seed):
    """Return a grid, its jobs, the options of its run, and when a job is cancelled, drawn from a seed."""
    rng = np.random.default_rng(seed)
    names = [f"s{i}" for i in range(rng.integers(2, 8))]
    instants = np.round(rng.uniform(0, 400, 12), int(rng.integers(0, 3)))  # few, so that much happens at once
    files, room = [], dict.fromkeys(names, 0.0)
    capacity = {name: float(rng.choice([30, 60, 100, 100.5, inf])) for name in names}
    for i in range(rng.integers(1, 12)):
        size = float(rng.choice([0, 1, 7.5, 20, 30, 59.5, 99, 150], p=[0.05, 0.1, 0.2, 0.25, 0.2, 0.1, 0.05, 0.05]))
        where = [
            name
            for name in rng.permutation(names)[: rng.choice([1, 1, 2, 3])].tolist()
            if room[name] + np.ceil(size) <= capacity[name]
        ]
        for name in where:
            room[name] += np.ceil(size)
        files.append(FileSpec(name=f"f{i}", size=size, sites=where))
    sites = []
    for name in names:
        hosts = [
            NodeSpec(
                count=int(rng.integers(1, 3)), cores=int(rng.choice([1, 2, 4])), speed=float(rng.choice([0.5, 1, 1.5]))
            )
            for _ in range(rng.integers(1, 3))
        ]
        delays = [
            None,
            None,
            3,
            DelaySpec(distribution="exponential", mean=20),
            DelaySpec(distribution="log-normal", mean=9),
        ]
        sites.append(
            SiteSpec(
                name=name,
                **({"hosts": hosts} if rng.random() < 0.6 else {"cores": int(rng.integers(1, 9))}),
                storage=StorageSpec(
                    capacity=capacity[name],
                    read_bandwidth=float(rng.choice([1, 5, inf])),
                    write_bandwidth=float(rng.choice([1, 5, inf])),
                    evict=str(rng.choice(["lru", "lfu", "size", "fifo", "none"])),
                ),
                staging=str(rng.choice(["before", "inside"])),
                overhead=delays[rng.integers(len(delays))],
                limit=None if rng.random() < 0.8 else int(rng.integers(1, 4)),
            )
        )
    links = [
        LinkSpec(
            name=a + b,
            bandwidth=float(rng.choice([0.5, 2, 10, 1e9], p=[0.3, 0.3, 0.3, 0.1])),
            latency=float(rng.choice([0, 0.5])),
            between=(a, b),
        )
        for a in names
        for b in names
        if a < b and rng.random() < 0.9
    ]
    outages = []
    for _ in range(rng.integers(0, 6)):
        at = float(rng.choice(instants))
        until = inf if rng.random() < NEVER_BACK else at + float(rng.choice([1, 10, 60, 200]))
        kind = "closed" if rng.random() < 0.25 else "down"
        outages.append(SiteOutageSpec(site=str(rng.choice(names)), at=at, until=until, kind=kind))
    spec = GridSpec(
        sites=sites,
        network=NetworkSpec(links=links),
        files=files,
        outages=outages,
        retries=int(rng.choice([0, 1, 3])),
        cycle=None if rng.random() < 0.8 else 3,
    )
    jobs = [_job(rng, number, instants, names, len(files)) for number in range(1, int(rng.integers(3, 40)))]
    data = [None, None, "prefetch", "least-used-link", Replicate(2, 3), Restless(), Subscribe({"f[1-3]": names[:2]})]
    options = {
        "policy": BROKERS[rng.integers(len(BROKERS))],
        "policies": str(rng.choice(["fcfs", "easy", "sjf"])),
        "seed": int(seed),
        **({} if (chosen := data[rng.integers(len(data))]) is None else {"data": chosen}),
    }
    if rng.random() < 0.2:
        jobs = _dependent(rng, jobs)
    if rng.random() < 0.2:
        jobs = [attrs.evolve(job, cancel=float(rng.uniform(0, 500))) if rng.random() < 0.3 else job for job in jobs]
    cancels = np.round(rng.uniform(0, 500, rng.integers(1, 12)), 1).tolist() if rng.random() < 0.3 else []
    return spec, jobs, options, cancels


def _dependent(rng, jobs):
    """Have half of the jobs wait for another one."""
    found = jobs[:1]
    for job in jobs[1:]:
        other, kind = found[rng.integers(len(found))].id, str(rng.choice(["start", "end", "success"]))
        found.append(attrs.evolve(job, dependencies=[Dependency(other, kind)]) if rng.random() < 0.5 else job)
    return found


def _job(rng, number, instants, names, files):
    known = [f"f{i}" for i in range(files + (rng.random() < 0.05))]
    inputs = rng.choice(known, rng.integers(0, 4)).tolist() if rng.random() < 0.7 else []
    written = [(f"o{number}{i}", float(rng.choice([0, 5, 12.5, 30, 70]))) for i in range(rng.integers(0, 4))]
    outputs = [File(name, size) for name, size in written] if rng.random() < 0.6 else []
    if rng.random() < 0.1:  # one that others write or read, too
        outputs.append(File(str(rng.choice(["f0", "f1", "o7"])), float(rng.choice([5, 20]))))
    return Job(
        id=number,
        submit=float(rng.choice(instants)),
        processors=int(rng.choice([1, 1, 2, 4])) if rng.random() < 0.95 else 99,
        run=float(rng.choice([0, 1, 10, 30, 200])),
        inputs=inputs,
        outputs=outputs,
        site=str(rng.choice(names)),
    )


def check_run(spec, jobs, options, cancels=()):
    """Run a grid and hold its data set against the account; return the final states of its jobs."""
    simulation = start(spec, jobs, **options)
    grid, rows = simulation.system, Rows({"events": GRID_EVENTS, "jobs": GRID_JOBS})
    simulation.env.observe(GridEvents(grid, rows))
    which = np.random.default_rng(options["seed"])

    def cancel():
        present = list(grid.present())
        if present:
            grid.cancel(present[which.integers(len(present))])

    for at in cancels:
        simulation.env.call_at(at, cancel)
    stalled = ""
    try:
        simulation.run()
    except Stalled as error:
        stalled = str(error)
    whole = not stalled
    if stalled:  # each job that waits for a site that never returns is named, or the file that it sends
        assert any(each.until == inf for each in spec.outages)
        for job in grid.present():
            assert f"job {job.id} " in stalled or f"file o{job.id}" in stalled, (job, stalled)
    hosts = {}
    for site in grid.places:
        kinds = [kind for kind in site.spec.hosts for _ in range(kind.count)]
        hosts[site.name] = {name: (kind.cores, kind.speed) for name, kind in zip(site.hosts, kinds, strict=True)}
    account = GridAccount(spec, jobs, hosts, grid.data.network.route)
    account.play(rows.tables["events"], rows.tables["jobs"], whole=whole)
    for site in grid.places:
        found, storage = account.sites[site.name], site.storage
        assert found.files == {name: int(np.ceil(size)) for name, size in storage.files.items()}
        if whole:
            assert storage.used == sum(found.files.values()) or grid.data.fetches
            assert not any(map(storage.pins, storage.files)) or grid.data.fetches
            assert not storage.waiting
            assert (site.present, site.on_the_way) == (0, [0, 0, 0])
            assert site.down or site.free == site.capacity
    result = grid.result()
    moved = result.flows["bytes"].sum()
    assert result.sites["bytes_in"].tolist()[-1] == pytest.approx(moved)
    assert result.jobs["bytes_in"].sum() + sum(grid.data.unclaimed.values()) == pytest.approx(moved)
    states = result.jobs["state"].tolist()
    assert {row["job"]: row["state"] for row in rows.tables["jobs"]} == {
        job.id: state for job, state in zip(jobs, states, strict=True) if whole or state in OVER
    }
    return states
