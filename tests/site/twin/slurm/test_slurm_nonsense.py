"""Texts and answers with something wrong in them: refused in one sentence, or described; nothing else happens."""

import tomllib
from contextlib import suppress
from datetime import UTC
from random import Random
from typing import Any

import pytest

from simmodel import InputError
from simmodel.platform import from_dict
from simmodel_site.twin.slurm.answers import read_answer
from simmodel_site.twin.slurm.describe import described
from simmodel_site.twin.slurm.jobs import jobs_in, reports_of
from simmodel_site.twin.slurm.records import Site
from simmodel_site.twin.slurm.scontrol import read_scontrol
from tests.site.helpers.slurm_texts import (
    FLAT_JOB,
    FLAT_LICENCE,
    FLAT_NODE,
    FLAT_PARTITION,
    FLAT_RESERVATION,
    TEXTS,
    answer,
)


def set_to(number: Any) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": number}


NODE = {**FLAT_NODE, "state": ["IDLE", "DRAIN"], "effective_cpus": 4}
PARTITION = {
    "name": "viz",
    "nodes": {"configured": "viz,viz[2-3]", "total": 3},
    "tres": {"configured": "cpu=12,mem=48000M,node=3"},
    "maximums": {"time": set_to(240), "nodes": set_to(2), "oversubscribe": {"jobs": 1, "flags": []}},
    "priority": {"tier": 2, "job_factor": 1},
    "partition": {"state": ["UP"]},
    "defaults": {"time": set_to(30)},
}
QOS = {
    "name": "study",
    "priority": set_to(3),
    "limits": {
        "max": {"wall_clock": {"per": {"job": set_to(9)}}, "tres": {"per": {"job": [{"type": "cpu", "count": 3}]}}}
    },
    "preempt": {"list": ["low"], "mode": ["REQUEUE"]},
}
ALLOCATION = {"nodes": {"allocation": [{"name": "viz", "cpus": {"count": 4}}]}}
JOB = {
    **FLAT_JOB,
    "job_state": ["RUNNING"],
    "submit_time": set_to(1795350608),
    "start_time": set_to(1795350609),
    "job_resources": ALLOCATION,
    "array_job_id": set_to(2),
    "array_task_string": "1-3",
}
NESTED = answer("v0.0.44", nodes=[NODE], partitions=[PARTITION], qos=[QOS], jobs=[JOB])
FLAT = answer(
    "v0.0.38",
    nodes=[FLAT_NODE],
    partitions=[FLAT_PARTITION],
    reservations=[FLAT_RESERVATION],
    licenses=[FLAT_LICENCE],
    jobs=[FLAT_JOB],
)
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 1e300, 2**63, 2**32 - 2, -(2**63), [], [1], ["x"], {}),
    *(set_to("x"), set_to(-5), {"set": True, "infinite": True, "number": 0}),
    *(
        "",
        "x",
        "n[1-",
        "a,b",
        "INFINITE",
        "gpu:",
        "(null)",
        "n[0-99999999999]",
        "9" * 400,
        "\n[x]",
        "\0",
        "cpu=INFINITE",
    ),
]
PIECES = ["", "0", "x", "\n", "=", "[", "9" * 20, " ", "UNLIMITED", "\nNodeName="]


def changed(value: Any, drawn: Random) -> Any:
    """The value with one other value somewhere inside it, or without one of its keys."""
    if isinstance(value, dict) and value and drawn.random() < 0.9:
        key = drawn.choice(list(value))
        rest = {name: each for name, each in value.items() if name != key}
        return rest if drawn.random() < 0.15 else {**rest, key: changed(value[key], drawn)}
    if isinstance(value, list) and value and drawn.random() < 0.9:
        place = drawn.randrange(len(value))
        return [*value[:place], changed(value[place], drawn), *value[place + 1 :]]
    return drawn.choice(VALUES)


def check(site: Site) -> None:
    found = described(site)
    assert from_dict(tomllib.loads(found.toml())) == found.spec


@pytest.mark.few(12)
@pytest.mark.parametrize("document", [NESTED, FLAT], ids=["nested", "flat"])
@pytest.mark.parametrize("seed", range(10))
def test_answers_are_described_or_refused(document: dict[str, Any], seed: int) -> None:
    check(read_answer(document))
    assert len([report for job in jobs_in(document) for report in reports_of(job)]) in {1, 3}
    drawn = Random(seed)
    for _ in range(100):
        wrong = changed(document, drawn)
        with suppress(InputError):
            check(read_answer(wrong))
        with suppress(InputError):
            for job in jobs_in(wrong):
                list(reports_of(job))


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(10))
def test_texts_are_described_or_refused(seed: int) -> None:
    drawn = Random(seed)
    for _ in range(30):
        site = Site()
        with suppress(InputError):
            for what, text in TEXTS.items():
                for _ in range(drawn.randrange(3)):
                    at = drawn.randrange(len(text))
                    text = text[:at] + drawn.choice(PIECES) + text[at + drawn.randrange(1, 40) :]
                site = site.with_(read_scontrol(text, what, UTC))
            check(site)
