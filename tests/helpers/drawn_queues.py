"""Queues drawn for random schedules: ``a`` may preempt ``b`` and may have limits."""

from __future__ import annotations

import random

from simmodel.platform import QueueSpec


def drawn_queues(rng: random.Random, *, preempts: bool, limits: bool) -> list[QueueSpec]:
    """Return queues ``a`` and ``b``; none without preemption and limits."""
    if not (preempts or limits):
        return []
    most = {"max_running_per_user": rng.choice([None, 1, 2]), "max_running": rng.choice([None, 3])}
    mode = rng.choice(["requeue", "suspend"])
    return [
        QueueSpec(name="a", preempts=["b"] if preempts else [], **(most if limits else {})),
        QueueSpec(name="b", preemptible=mode if preempts else None),
    ]
