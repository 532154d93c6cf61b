"""What commands and summaries say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.lock import api, documents, work
from tests.lock.areas import whatifs
from tests.lock.areas.brokers import SIZES, homes
from tests.lock.cases import text

MASKS = (
    (re.compile(r"(decisions[^\n]*?, ).*(seconds each|\(min / mean / max\))"), r"\1TIME"),
    (re.compile(r"(a decision took ).*"), r"\1TIME"),
)


def masked(said: str) -> str:
    """Return a text without what the clock had a part in, each line without blanks at its end."""
    for pattern, instead in MASKS:
        said = pattern.sub(instead, said)
    return "\n".join(line.rstrip() for line in said.splitlines())


OWN = """generator = "synthetic"
[parameters]
jobs = 20
run = 5000.0
size = 64
gap = { distribution = "exponential", mean = 300.0 }
"""
LUBLIN = """generator = "lublin"
seed = 5
[parameters]
jobs = 50
processors = 32
"""
PLATFORM = """kind = "cluster"
[[partitions]]
name = "cpu"
nodes = [{ count = 4, cores = 4, memory = "64GB", idle_power = 50, load_power = 200 }]
[[queues]]
name = "short"
max_requested = "1h"
"""
COMMANDS = {
    **{
        f"list-{kind}": f"list {kind}"
        for kind in (
            *("policies", "brokers", "placements", "evictions"),
            *("platforms", "workloads", "formats", "generators"),
        )
    },
    "batch": "batch lublin-128-week --policy easy",
    "batch-default": "batch one.swf",
    "batch-dirty": "batch dirty.swf --order sjf --backfill conservative",
    "batch-until": "batch one.swf --until 600 --decide-on event --event-order ends-first --estimates cqsim",
    "batch-files": "batch one.swf --events --schedule s.csv --json r.json --db r.sqlite --trace t.json",
    "batch-snapshot": "batch one.swf --policy conservative --snapshot snap.json --at 700",
    "batch-platform": "batch a.csv --platform own.toml --policy fcfs",
    "batch-gpu-cluster": "batch schedtwin --platform gpu-cluster --policy multifactor",
    "batch-gwf": "batch a.gwf --processors 8 --overrun continue",
    "batch-sacct": "batch a.sacct --processors 128",
    "batch-pbs": "batch a.pbs --processors 32",
    "batch-portfolio": "batch one.swf --policy portfolio(easy,sjf+easy,objective=wait_mean)",
    "compare": "compare lublin-128-week --policies fcfs,easy,sjf+easy",
    "compare-one": "compare one.swf --policies wfp+conservative --table t.csv",
    "compare-platform": "compare one.swf --policies fcfs,easy --platform own.toml --overrun continue",
    "machine": "machine hetsim-slow fork-join-dressed --critical",
    "machine-heft": "machine hetsim-fast-setup layered:n=15,fat=0.6 --policy heft --seed 2 --overlap",
    "machine-power": "machine a100x4 random:tasks=30,families=3 --policy earliest-finish --transfers parallel",
    "machine-over-time": "machine xeon-2s graphs-over-time --policy min-min --until 3000",
    "machine-dax": "machine xeon-2s a.dax --policy greedy-ds --no-contention --critical",
    "machine-files": "machine upmem-4 database:tasks=40 --schedule s.csv --json r.json --db r.sqlite --trace t.json",
    "explore": "explore --platforms hetsim-slow,hetsim-fast --workloads random:tasks=12 --policies hrr,heft --seeds 3",
    "explore-one-seed": "explore --platforms hetsim-slow --workloads fork-join --policies hrr,heft,peft --seeds 7,",
    "explore-clusters": "explore --platforms small --workloads poisson-mm4 --policies fcfs,easy --seeds 2 "
    "--until 5000 --metrics wait_mean,utilisation",
    "meta": "meta schedtwin --clusters 32,64 --broker random,sgs-t --repeat 2",
    "meta-homes": "meta one.swf two.swf --clusters 4,8 --broker siloed,sgs-t --ties home --align --by actual "
    "--backfill conservative",
    "meta-slowdowns": "meta one.swf --clusters 4,4 --slowdowns 1,1.3 --broker share(0.6),sgs-t --repeat 3 --edges 5",
    "meta-default": "meta one.swf --clusters 4,theta,own.toml --json m.json",
    "portfolio": "portfolio probe-4",
    "portfolio-options": "portfolio one.swf --policies easy,sjf+easy --objective raw:wait_mean --interval 60 "
    "--hysteresis 0.1 --choices c.csv",
    "whatif": "whatif s.json --policies fcfs,easy,sjf+easy",
    "whatif-arrivals": "whatif s.json --policies fcfs,easy --arrivals more.toml --samples 3 --seed 5",
    "whatif-horizon": "whatif s.json --policies fcfs,conservative --horizon 3600 --objective schedtwin --json w.json "
    "--table w.csv",
    "whatif-broker": "whatif broker.json --policies sgs-t,least-loaded,siloed",
    "whatif-machine": "whatif machine.json --policies hrr,heft,min-min",
    "generate": "generate poisson --jobs 5 --processors 4",
    "generate-lublin": "generate lublin --jobs 20 --processors 64 --load 0.7 --estimates --seed 3",
    "generate-file": "generate lublin.toml -o out.swf",
}


def _prepare(line: str) -> None:
    for name, content in {**documents.files(), "more.toml": OWN, "lublin.toml": LUBLIN, "own.toml": PLATFORM}.items():
        Path(name).write_text(content, "utf-8")
    if " s.json" in line:
        api.command("batch", "lublin-128-week", "--snapshot", "s.json", "--at", "300000")
    elif "broker.json" in line:
        api.save_snapshot(whatifs.brokered(), "broker.json")
    elif "machine.json" in line:
        api.save_snapshot(whatifs.machine(), "machine.json")


def command(line: str) -> str:
    """Return what a command says."""
    _prepare(line)
    return masked(api.command(*line.split(" ")))


def summaries() -> dict[str, Any]:
    """Return what summaries and short forms say, by name."""
    return {
        "jobs": lambda: _result(api.run_batch(16, work.log(91), "easy")),
        "jobs-options": lambda: api.run_batch(16, work.log(91), "wfp+easy").summary(warmup=50),
        "jobs-stopped": lambda: _result(api.run_batch(16, work.log(91), "fcfs", until=100)),
        "jobs-nodes": lambda: _result(
            api.run_batch(work.nodes(), list(work.jobs(2, 40, waits=True)), "easy", until=4000)
        ),
        "jobs-failing": lambda: _result(
            api.run_batch(work.failing("lose"), list(work.jobs(4, 40, kind="queues")), "easy", until=4000)
        ),
        "jobs-preempting": lambda: _result(
            api.run_batch(work.preempting("suspend"), list(work.jobs(6, 40, kind="queues")), "preemptive")
        ),
        "tasks": lambda: _result(api.run_machine(work.machine(), work.flow(1), "heft-setup")),
        "tasks-over-time": lambda: _result(
            api.run_machine(
                work.machine(queue="priority", preemption="suspend"), [(0.0, work.flow(1)), (9.0, work.tasks(2))], "hrr"
            )
        ),
        "tasks-stopped": lambda: _result(api.run_machine(work.machine(), work.flow(1), "hrr", until=50)),
        "brokered": lambda: _result(api.run_brokered(SIZES, homes(), "sgs-t")),
        "brokered-slower": lambda: _result(api.run_brokered(SIZES, homes(), "random", slowdowns=(1, 1.5, 2))),
        "went-on": lambda: _result(api.go_on(api.cut_batch(16, work.log(91), "easy", 60))),
        "comparison": lambda: _said(api.compared(16, work.log(91), ["fcfs", "easy", "conservative"])),
        "brokers-compared": lambda: _said(api.compared_brokers(SIZES, homes("siloed"), ["siloed", "sgs-t"])),
        "exploration": lambda: _said(
            api.explored(["hetsim-slow"], ["random:tasks=12", "layered:n=12"], ["hrr", "heft"], seeds=3)
        ),
        "portfolio-compared": lambda: _said(
            api.portfolio_compared(16, work.log(92, 30), "portfolio(fcfs, sjf, backfill=easy)")
        ),
        "whatif": lambda: _said(api.whatif(whatifs.cluster(), whatifs.POLICIES)),
        "whatif-drawn": lambda: _said(
            api.whatif(whatifs.cluster(), ["fcfs", "easy"], arrivals=whatifs.SETTINGS, samples=3, horizon=100)
        ),
        "whatif-branches": lambda: _said(api.whatif(whatifs.cluster(), whatifs.branches(whatifs.cluster()))),
        "whatif-machine": lambda: _said(api.whatif(whatifs.machine(), ["hrr", "heft", "min-min"])),
        "whatif-brokered": lambda: _said(api.whatif(whatifs.brokered(), ["sgs-t", "siloed", None])),
        "short-forms": _short,
    }


def _said(found: Any) -> str:
    return f"{found!r}\n\n{found.summary()}"


def _result(result: Any) -> str:
    return f"{result!r}\n\n{result.summary()}\n\n{result.report}"


def _short() -> str:
    """Say the short forms of specs, work and snapshots."""
    values = [
        work.log(91),
        api.log_of(work.jobs(2)),
        work.flow(1),
        work.tasks(2),
        whatifs.cluster(),
        whatifs.machine(),
        whatifs.brokered(),
        *(branch for branch in whatifs.branches(whatifs.cluster()).values() if branch is not None),
    ]
    shown = [str(value) if type(value).__name__ == "Branch" else repr(value) for value in values]
    return "\n".join(line if len(line) < 300 else f"{line[:300]}..." for line in shown)


def of_the_core(line: str) -> str:
    """Return the text of a command where no other package is installed."""
    with patch("simmodel.scheduling.registry._of_others", dict):
        return command(line)


def add() -> None:
    """Add the texts."""
    for name, line in COMMANDS.items():
        text("texts-commands", name, lambda line=line: of_the_core(line))
    for name, make in summaries().items():
        text("texts-summaries", name, lambda make=make: masked(make()))
