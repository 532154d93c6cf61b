"""The rest of the garbage collector while a simulation is built, and while it is stepped: one for all questions."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

from simmodel import Simulation, Start, Workload, environment, simulate, start
from simmodel.foundation.errors import PolicyError

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch: pytest.MonkeyPatch, collector: None) -> Iterator[None]:
    """Let no simulation of another test, which something still holds, keep the collector at rest."""
    before = gc.get_threshold()
    monkeypatch.setattr(environment, "_quiet", environment._Quiet())
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def resting() -> bool:
    return gc.get_threshold() != USUAL


def stepped() -> Simulation:
    sim = start(12, "probe-4", "fcfs")
    assert sim.next_decision() is not None
    return sim


def test_a_thousand_questions_freeze_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[None] = []
    freeze = gc.freeze
    sim, questions = start(128, "lublin-128-week", "fcfs"), 0
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(None) or freeze())
    while sim.next_decision() is not None and questions < 1000:
        assert resting()
        questions += 1
        sim.decide()
    assert questions == 1000
    assert len(frozen) == 1
    sim.run()
    assert not resting()


def test_it_rests_while_a_long_queue_is_restored() -> None:
    waiting = Workload({"submit": np.zeros(8_000), "run": np.ones(8_000), "processors": np.ones(8_000)})
    snapshot = start(1, waiting, "fcfs").run(until=0.5).snapshot()
    found: list[str] = []
    gc.callbacks.append(lambda phase, _: found.append(phase))
    try:
        restored = start(snapshot)
    finally:
        gc.callbacks.pop()
    assert restored.system.load.queued == 7_999
    assert not resting()
    assert found.count("start") <= 2  # 51 without the rest, the full ones over all jobs


def test_the_collector_works_again_after_the_last_question() -> None:
    sim = stepped()
    sim.decide()
    while sim.next_decision() is not None:
        sim.decide()
    assert not resting()


def test_it_ends_when_the_simulation_runs_or_is_dropped() -> None:
    assert not resting()
    one, other = stepped(), stepped()
    one.run()
    assert resting()
    simulate(12, "probe-4", "fcfs")
    assert resting()
    del other
    assert not resting()


def test_the_collector_works_again_after_an_error() -> None:
    sim = stepped()
    with pytest.raises(PolicyError):
        sim.decide([Start(None, None)])
    assert resting()  # the question is still open
    sim.env.call_at(sim.env.now + 1, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sim.next_decision()
    assert not resting()


def test_settings_of_a_user_are_kept() -> None:
    gc.set_threshold(1234, 5, 6)
    try:
        sim = stepped()
        assert gc.get_threshold() != (1234, 5, 6)
        sim.run()
        assert gc.get_threshold() == (1234, 5, 6)
    finally:
        gc.set_threshold(*USUAL)
