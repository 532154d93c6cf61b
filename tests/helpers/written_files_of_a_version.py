"""Results and snapshots as a version writes them, kept as text so that later versions can be tried with them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from simmodel import Job, Snapshot, load_result, simulate, start
from simmodel.platform import GridSpec, SiteSpec

JOBS = [
    Job(id=n, submit=n, processors=1 + n % 3, run=10 * n, requested=12 * n, user="ann" if n % 2 else "bob")
    for n in range(1, 7)
]
KINDS = {
    "cluster": (4, JOBS, "easy"),
    "machine": ("hetsim-slow", "random:tasks=5", "heft"),
    "broker": ({"a": 4, "b": 4}, {"a": JOBS}, "sgs-t"),
    "grid": (GridSpec(sites=[SiteSpec(name="a", cores=4)]), JOBS, "least-loaded"),
}
"""A platform, work and a policy of each kind of system."""


def write_all(folder: Path) -> None:
    """Write the result of each kind as SQL, a snapshot as JSON, and when both simulations end."""
    folder.mkdir(exist_ok=True)
    ends = {}
    for kind, (platform, work, policy) in KINDS.items():
        result = simulate(platform, work, policy, seed=1)
        with TemporaryDirectory() as other:
            path = Path(other, "result.sqlite")
            result.to_sqlite(path)
            with closing(sqlite3.connect(path)) as database:
                (folder / f"{kind}.sql").write_text("\n".join(database.iterdump()) + "\n", "utf-8")
        simulation = start(platform, work, policy, seed=1)
        simulation.env.run(until=15)
        text = simulation.snapshot().to_json()
        (folder / f"{kind}.json").write_text(text + "\n", "utf-8")
        ends[kind] = {"result": result.ended, "snapshot": end_of_snapshot(folder / f"{kind}.json")}
    (folder / "ends.json").write_text(json.dumps(ends, indent=2) + "\n", "utf-8")


def end_of_result(path: Path, folder: Path) -> float:
    """Return when a result ended that is kept as SQL; its data set is made in a folder."""
    made = folder / "result.sqlite"
    with closing(sqlite3.connect(made)) as database:
        database.executescript(path.read_text("utf-8"))
    return load_result(made).ended


def end_of_snapshot(path: Path) -> float:
    """Return when the simulation ends that continues a snapshot."""
    return start(Snapshot.from_json(path)).run().result().ended
