"""The base class of observers: it lists all hooks, unused hooks cost nothing, and it detects typos."""

import inspect
import re
from pathlib import Path

import pytest

import simmodel
from simmodel import Cluster, Environment, Job, Observer
from simmodel.environment import hook
from simmodel.records import JobRecorder, NetworkRecorder
from simmodel.records.observers import EventRecorder, Progress, UsageMeter
from simmodel.systems.cluster.future.guest import Forecast

SOURCES = "\n".join(
    re.sub(r"(?m)^ *>>> .*$", "", path.read_text("utf-8")) for path in Path(simmodel.__file__).parent.rglob("*.py")
)


def test_every_hook_that_is_announced_is_documented() -> None:
    announced = set(re.findall(r'(?:env\.hooks|\btell|\._tell)\(\s*"(\w+)"', SOURCES))
    for names in re.findall(r"_HOOKS = \(([^)]*)\)", SOURCES):
        announced |= set(re.findall(r'"(\w+)"', names))
    assert {"job_started", "task_ended", "job_handed", "data_moved", "decided", "link_changed"} <= announced
    assert announced <= Observer.HOOKS
    assert all(inspect.getdoc(getattr(Observer, name)) for name in Observer.HOOKS)


@pytest.mark.parametrize("kind", [EventRecorder, JobRecorder, NetworkRecorder, Progress, UsageMeter, Forecast])
def test_the_packages_own_observers_take_what_is_announced(kind: type[Observer]) -> None:
    own = [name for name in Observer.HOOKS if name in vars(kind)]
    assert own
    kind.check_names()
    for name in own:
        assert len(inspect.signature(vars(kind)[name]).parameters) == len(
            inspect.signature(getattr(Observer, name)).parameters
        )


def test_hooks_that_are_not_overridden_are_not_called() -> None:
    class Ends(Observer):
        def job_ended(self, run, status):
            ended.append((env.now, run.job.id, status))

    ended: list[tuple[float, int, str]] = []
    env = Environment()
    observer = Ends()
    env.observe(Observer())
    env.observe(observer)
    assert {name for name in Observer.HOOKS if env.hooks(name)} == {"job_ended"}
    assert env.hooks("job_ended") == (observer.job_ended,)
    Cluster(env, 4).submit(Job(processors=1, run=3))
    env.run()
    assert ended == [(3, 1, "completed")]


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("job_start", "job_started"), ("job_end", "job_ended"), ("place_change", "place_changed"), ("decides", "decided")],
)
def test_a_method_close_to_a_hook_is_refused(wrong: str, meant: str) -> None:
    with pytest.raises(TypeError, match=rf"Mine\.{wrong} is not a hook; did you mean {meant}\?"):
        type("Mine", (Observer,), {wrong: lambda self, *what: None})


def test_an_observer_may_have_methods_unlike_any_hook() -> None:
    names = ("table", "jobs", "decide", "_job_start", "load", "expect", "transfers", "reset")
    assert type("Mine", (Observer,), {name: lambda self: None for name in names})


def test_a_kind_of_system_adds_its_own_hooks() -> None:
    class LampObserver(Observer):
        @hook
        def lamp_lit(self, room: str, /) -> None:
            """A lamp was lit."""

    class Watch(LampObserver):
        def lamp_lit(self, room):
            lit.append(room)

    try:
        lit: list[str] = []
        env = Environment()
        env.observe(LampObserver())
        assert env.hooks("lamp_lit") == ()
        env.observe(Watch())
        for call in env.hooks("lamp_lit"):
            call("hall")
        assert lit == ["hall"]
        with pytest.raises(TypeError, match="did you mean lamp_lit"):
            type("Mine", (LampObserver,), {"lamp_lits": lambda self, room: None})
    finally:
        Observer.HOOKS.discard("lamp_lit")
