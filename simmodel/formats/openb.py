"""openb: the nodes and pods of a GPU cluster of Alibaba, whose pods share devices.

CPU is counted in thousandths of a core, as the files and Kubernetes do: 6,000 processors are six cores.

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023; Q. Weng et al., "Beware of fragmentation:
scheduling GPU-sharing workloads with fragmentation gradient descent", USENIX ATC 2023.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import numpy as np

from simmodel.formats.tables import named_rows, taken
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.loading import Source, reader, title_of
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.work.workload import Report, Workload

__all__ = ["read_openb", "read_openb_nodes"]

MIB = 1 << 20
_NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_PODS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_TIMES = ("creation_time", "deletion_time", "scheduled_time")
NEVER = "never scheduled: run time from creation to deletion"
NO_TIMES = "no times: all submitted at 0, run time unknown"


def _count(row: dict[str, str], column: str, least: int = 0) -> int:
    text = row.get(column, "").strip()
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) < least:
        raise InputError(f"{column}: must be a whole number >= {least}, got {shown(text)}")
    return int(text)


@reader
def read_openb_nodes(source: Source, *, placement: str | None = None) -> ClusterSpec:
    """Read the nodes of openb as a cluster; GPUs have their model as type.

    Parameters
    ----------
    source
        a path or an open file
    placement
        of the nodes, as for :class:`~simmodel.platform.PartitionSpec`

    Raises
    ------
    InputError
        the file cannot be read, lacks a column, has a bad row, or a node twice

    >>> import io
    >>> text = "sn,cpu_milli,memory_mib,gpu,model\\nn-1,96000,393216,8,G2\\nn-2,64000,262144,2,P100\\n"
    >>> spec = read_openb_nodes(io.StringIO(text))
    >>> spec.processors, [(kind.names, kind.gpu_types) for kind in spec.partitions[0].nodes]
    (160000, [('n-1', {'G2': 8}), ('n-2', {'P100': 2})])
    """
    name, rows = named_rows(source, _NODES)
    seen: set[str] = set()

    def take(row: dict[str, str]) -> tuple[str, tuple[int, int, int, str]]:
        gpus, model, sn = _count(row, "gpu"), row.get("model", "").strip(), row.get("sn", "").strip()
        if gpus and not model:
            raise InputError("model: must be that of the GPUs, got none")
        if sn == "" or sn in seen:
            raise InputError(f"sn: duplicate node name {sn!r}" if sn else "sn: must be the name of the node, got none")
        seen.add(sn)
        return sn, (_count(row, "cpu_milli", 1), _count(row, "memory_mib"), gpus, model)

    found = list(taken(rows, take, name, Report(), strict=True))
    if not found:
        raise InputError("no nodes", source=name)
    kinds = []
    for (cores, memory, gpus, model), alike in groupby(found, key=lambda each: each[1]):
        types: Any = {model: gpus} if gpus else 0
        names = ",".join(each for each, _ in alike)
        kinds.append(NodeSpec(names=names, cores=cores, memory=float(memory * MIB), gpus=types))
    try:
        partition = PartitionSpec(name="openb", nodes=kinds, placement=placement)
    except InputError as error:
        raise InputError(error.message, source=name, place=error.place) from None
    return ClusterSpec(name="openb", partitions=[partition])


@reader
def read_openb(source: Source, *, strict: bool | None = None) -> Workload:
    """Read the pods of openb: jobs for one node, with whole GPUs or a share of one.

    A pod runs from its scheduling to its deletion; one that was never scheduled is given the time from its creation to
    its deletion, and ``report`` counts these. Columns ``qos`` and ``phase`` are kept as they are.

    Parameters
    ----------
    source
        a path or an open file
    strict
        whether a bad row is an error; else it is skipped, and counted

    Raises
    ------
    InputError
        the file cannot be read, lacks a column, has no pods, or a bad row: with its line and column

    >>> import io
    >>> pods = read_openb(io.StringIO(
    ...     "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    ...     "scheduled_time\\npod-1,6000,12288,1,460,V100M16|V100M32,LS,Running,10,90,12\\n"))
    >>> pods["processors"], pods["gpus_per_node"], pods["gpu"].tolist(), pods["run"], pods["wait"]
    (array([6000]), array([0.46]), ['V100M16|V100M32'], array([78.]), array([2.]))
    """
    name, rows = named_rows(source, _PODS)
    report = Report()

    def take(row: dict[str, str]) -> dict[str, Any]:
        gpus, milli = _count(row, "num_gpu"), _count(row, "gpu_milli")
        if (gpus == 1 and not 1 <= milli <= 1000) or (gpus > 1 and milli != 1000):
            raise InputError(f"gpu_milli: must be a share of one GPU or 1000 of each, got {milli} of {gpus}")
        created = deleted = scheduled = -1
        if all(column in row for column in _TIMES):
            created, deleted = (_count(row, column) for column in _TIMES[:2])
            scheduled = _count(row, "scheduled_time") if row["scheduled_time"].strip() else -1
            if deleted < max(created, scheduled):
                raise InputError(f"deletion_time: must not be before the pod was scheduled, got {deleted}")
        return {
            "job": row["name"].strip(),
            "submit": max(created, 0),
            "wait": scheduled - created if scheduled >= 0 else -1,
            "run": -1 if deleted < 0 else deleted - (scheduled if scheduled >= 0 else created),
            "processors": _count(row, "cpu_milli", 1),
            "memory": _count(row, "memory_mib") * MIB,
            "gpus": milli / 1000 if gpus == 1 else gpus,
            "gpu": row.get("gpu_spec", "").strip() if gpus else "",
            "qos": row.get("qos", "").strip(),
            "phase": row.get("pod_phase", "").strip(),
        }

    found = list(taken(rows, take, name, report, strict=strict))
    if not found:
        raise InputError("no jobs", source=name)
    column = {key: np.array([each[key] for each in found]) for key in found[0]}
    never = int(((column["wait"] < 0) & (column["run"] >= 0)).sum())
    unknown = int((column["run"] < 0).sum())
    for reason, count in ((NEVER, never), (NO_TIMES, unknown)):
        if count:
            report.repaired[reason] += count
    columns: dict[str, Any] = {
        **{key: column[key].astype(np.float64) for key in ("submit", "wait", "run")},
        "job": column["job"],
        "processors": column["processors"],
        "nodes": np.ones(len(found), dtype=np.int64),
        "cores_per_node": column["processors"],
        "memory_per_node": column["memory"].astype(np.float64),
        "gpus_per_node": column["gpus"],
        "qos": column["qos"],
        "phase": column["phase"],
    }
    if (column["gpu"] != "").any():
        columns["gpu"] = column["gpu"]
    return Workload(columns, name=title_of(name, ".csv"), report=report)
