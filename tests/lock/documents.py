"""Small files of each format that simmodel reads and cannot write."""

from __future__ import annotations

import json

from tests.lock.work import Draw

SACCT = """\
JobID|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|ReqCPUS|NNodes|State|User|Account|Partition|QOS|ReqTRES|Priority
10|2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00|1-00:00:00|64|64|2|COMPLETED|ann|phys|gpu|\
normal|cpu=64,gres/gpu=8,mem=512G,node=2|12
10.batch|2024-05-01T12:01:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00||64|64|2|COMPLETED||||||
12_3|2024-05-01T12:00:30|2024-05-01T12:02:00|2024-05-01T12:02:30|00:00:30|UNLIMITED|1|1|1|TIMEOUT|bob|bio|cpu|\
normal|cpu=1,mem=4000M,node=1|13
14|2024-05-01T12:00:50|None|2024-05-01T12:10:00|00:00:00|10:00|0|16|1|CANCELLED by 1000|eve|bio|cpu|high|\
cpu=16,node=1|15
15|2024-05-01T12:01:00|2024-05-01T12:10:00|2024-05-01T12:11:00|00:01:00|10:00|16|16|1|FAILED|eve|bio|cpu|high|\
cpu=16,node=1|15
"""

PBS = """\
05/01/2024 12:00:00;Q;1.server;queue=batch
05/01/2024 12:01:00;S;1.server;user=ann group=phys queue=batch ctime=1714564800 qtime=1714564800 start=1714564860 \
exec_host=n1/0*4 Resource_List.ncpus=4 Resource_List.walltime=02:00:00
05/01/2024 13:01:00;E;1.server;user=ann group=phys queue=batch ctime=1714564800 qtime=1714564800 start=1714564860 \
end=1714568460 exec_host=n1/0*4 Resource_List.ncpus=4 Resource_List.walltime=02:00:00 \
resources_used.walltime=01:00:00 resources_used.mem=1024kb Exit_status=0
05/01/2024 13:02:00;E;2.server;user=bob group=bio queue=long ctime=1714564900 qtime=1714564900 start=1714564960 \
end=1714568520 Resource_List.select=2:ncpus=8:ngpus=1:mem=4gb Resource_List.walltime=01:00:00 \
resources_used.walltime=00:59:20 Exit_status=271
05/01/2024 13:03:00;D;3.server;requestor=eve@host
"""

DAX = """<?xml version="1.0" encoding="UTF-8"?>
<adag version="3.6" name="small">
  <job id="j1" namespace="n" name="split" runtime="12.5">
    <uses file="f.a" link="input" size="500"/><uses file="f.b" link="output" size="300"/>
  </job>
  <job id="j2" name="work" runtime="30"><uses file="f.b" link="input" size="300"/>
    <uses file="f.c" link="output" size="70"/></job>
  <job id="j3" name="work" runtime="7.25"><uses file="f.b" link="input" size="300"/></job>
  <job id="j4" name="join" runtime="3"><uses file="f.c" link="input" size="70"/></job>
  <child ref="j2"><parent ref="j1"/></child>
  <child ref="j3"><parent ref="j1"/></child>
  <child ref="j4"><parent ref="j2"/><parent ref="j3"/></child>
</adag>
"""

DAGGEN = """// DAG automatically generated
NODE_COUNT 6
NODE 0 1,2 ROOT 0.0 0.0
NODE 1 4 COMPUTATION 2000 0.15
NODE 2 6 COMPUTATION 3000 0.05
NODE 4 5 TRANSFER 800 0.0
NODE 5 6 COMPUTATION 500 0.20
NODE 6 - END 0.0 0.0
"""

SST = json.dumps(
    {
        "tasks": [
            {"id": 1, "execution_time": 100, "resources": {"cpu": 2, "memory": 1024}, "dependencies": []},
            {"id": "two", "execution_time": 50.5, "resources": {"cpu": 1}, "dependencies": [1], "priority": 3},
            {"id": 3, "execution_time": 20, "resources": {"cpu": 4, "memory": 64}, "dependencies": [1, "two"]},
        ],
        "resources_available": {"cpu": 10, "memory": 8192},
        "scheduling_policy": "Static",
        "preemption": True,
    }
)

WFFORMAT = json.dumps(
    {
        "name": "small",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    {"id": "a", "name": "split", "parents": [], "children": ["b", "c"], "outputFiles": ["f"]},
                    {"id": "b", "name": "use", "parents": ["a"], "children": [], "inputFiles": ["f"]},
                    {"id": "c", "name": "use", "parents": ["a"], "children": [], "inputFiles": ["f"]},
                ],
                "files": [{"id": "f", "sizeInBytes": 512}],
            },
            "execution": {
                "makespanInSeconds": 14.5,
                "executedAt": "2026-08-04T15:20:00-08:00",
                "tasks": [
                    {"id": "a", "runtimeInSeconds": 4.5},
                    {"id": "b", "runtimeInSeconds": 9, "coreCount": 2, "memoryInBytes": 1000000},
                    {"id": "c", "runtimeInSeconds": 8.25},
                ],
            },
        },
    }
)

CSV = """\
job,submit,run,processors,requested,user,queue,nodes,memory_per_node
1,0,10,4,20,ann,short,2,1000
2,0,30,2,30,bob,long,1,0
3,5.5,12.25,8,60,ann,short,4,2000
4,5.5,1,1,1,eve,long,1,0
"""

COLUMNS_OF_GWF = 29


def gwf() -> str:
    """Return some lines of the Grid Workloads Format."""
    draw = Draw(71)
    lines = ["# Version: 1", "# Note: made"]
    for number in range(1, 21):
        fields = ["-1"] * COLUMNS_OF_GWF
        fields[:5] = [str(number), str(1000 + 7 * number), str(draw.whole(0, 9)), str(draw.whole(1, 90)), "2"]
        fields[7], fields[8], fields[10] = str(draw.whole(1, 4)), str(draw.whole(90, 200)), str(draw.whole(0, 1))
        fields[11:15] = [f"U{draw.whole(1, 3)}", "G1", "A5", "Q1"]
        fields[18] = "UNITARY"
        lines.append("\t".join(fields))
    return "\n".join(lines) + "\n"


def swf() -> str:
    """Return a log with what is to be repaired or refused: late submissions, too many processors, no run time."""
    draw = Draw(72)
    lines = ["; Version: 2.2", "; MaxProcs: 12", "; UnixStartTime: 100", "; Note: made"]
    for number in range(1, 31):
        submit, run = 5 * number - draw.of((0, 0, 9)), draw.of((0, 7, 30, 61, -1 if number % 9 == 0 else 5))
        size = draw.of((1, 2, 4, 12, 40 if number % 11 == 0 else 3))
        asked = draw.of((-1, 10, 60, 100))
        lines.append(f"{number} {submit} 3 {run} {size} 5 64 {size} {asked} 128 1 {draw.whole(1, 3)} 1 2 1 1 -1 -1")
    return "\n".join(lines) + "\n"


def generated_log(number: int, begin: int = 0) -> str:
    """Return a plain log of 40 jobs on 4 processors."""
    draw = Draw(80 + number)
    lines = ["; MaxProcs: 4"]
    for i in range(1, 41):
        run, size = draw.whole(20, 120), draw.whole(1, 4)
        lines.append(f"{i} {begin + 30 * i} -1 {run} {size} -1 -1 {size} {2 * run} -1 1 {1 + i % 3} -1 -1 -1 -1 -1 -1")
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """Return all of them by the name of a file."""
    return {
        "a.sacct": SACCT,
        "a.pbs": PBS,
        "a.dax": DAX,
        "a.daggen": DAGGEN,
        "sst.json": SST,
        "wf.json": WFFORMAT,
        "a.csv": CSV,
        "a.gwf": gwf(),
        "dirty.swf": swf(),
        "one.swf": generated_log(1),
        "two.swf": generated_log(2, 1000),
    }
