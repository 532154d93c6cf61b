"""``explain()``: why work waits, on systems of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, inf
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs
import numpy as np

from simmodel.foundation.display import Cells
from simmodel.foundation.errors import ImpossibleWork, InputError, Stalled
from simmodel.foundation.units import show_quantity
from simmodel.metrics.task_waits import row_of_task, task_waits
from simmodel.referee.choice_explanation import Redirected, explain_choice
from simmodel.referee.explanation import Change, table_lines, told_of
from simmodel.referee.job_life import explain_job
from simmodel.referee.obstacles import MEGABYTE, largest
from simmodel.results.stored import Told
from simmodel.runs.scenario import Missing, Scenario
from simmodel.scheduling.registry import policy as policy_of
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simmodel.referee.choice_explanation import ChoiceExplanation
    from simmodel.referee.explanation import Explanation
    from simmodel.results.machine import MachineResult
    from simmodel.results.stored import Stored
    from simmodel.runs.scenario import GivenPlatform, Scenario
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.machine.system import Machine
    from simmodel.systems.submissions import GivenWork
    from simmodel.view.style import Size

__all__ = ["Explained", "TaskExplanation", "explain", "explain_in", "explain_result", "explain_task"]

_TRIED = 8  # processors


def explain(
    platform: GivenPlatform,
    workload: GivenWork,
    policy: PolicyLike | None,
    job: int | str,
    at: float | None = None,
    *,
    progress: bool = False,
    **options: Any,
) -> Explained:
    """Simulate a workload and explain why a job waits at an instant, with the reasons of its wait until it started.

    On a machine: the waits of a task, and the holders. At a broker or on a grid: why the job was sent to its place, and
    why it waited there.

    Parameters
    ----------
    platform, workload, policy, options
        as of :func:`~simmodel.runs.scenario.simulate`
    job
        the id of the job or task
    at
        on a cluster, the instant (s); default: that of its submission
    progress
        whether to show a progress bar

    Raises
    ------
    InputError
        there is no such job, or it does not wait at the instant

    >>> found = explain(12, "probe-4", "easy", 3)
    >>> found.reason, found.expected, [change.text for change in found.changes]
    ('processors', 1000.0, ['with 2 processors instead of 7'])
    >>> list(found.spans.rows())
    [{'since': 950.0, 'until': 1000.0, 'reason': 'processors'}]

    >>> found = explain({"a": 7, "b": 7}, "probe-4", "sgs-t", 3)
    >>> found.chosen, found.places["start"].tolist()
    ('a', [1000.0, 1400.0])
    """
    return explain_in(Scenario.of(platform, workload, policy, **options), job, at, progress=progress)


def explain_result(
    result: Stored, work: int | str, at: float | None = None, *, trust: bool = False, **given: Any
) -> Explained:
    """Repeat the run of a result, and explain why a job or a task waited.

    Parameters
    ----------
    result
        its scenario is run again
    work, at
        as of :func:`explain`
    trust
        whether the policies of a stored scenario may be ``module:name``, which imports code
    given
        parts that the scenario does not store, such as ``policy`` and ``workload`` that were passed as objects

    >>> from simmodel import simulate
    >>> explain_result(simulate(12, "probe-4", "easy"), 3).expected
    1000.0
    """
    if "platform" not in result.scenario:
        raise InputError(
            f"{result.name}: cannot be explained: it has no scenario; use explain(platform, workload, ...)"
        )
    scenario = attrs.evolve(Scenario.from_document(result.scenario, trust=trust), **given)
    for missing in (scenario.platform, scenario.workload, scenario.policy, scenario.policies):
        if isinstance(missing, Missing):
            raise InputError(missing.message.replace("as run(", "as explain("))
    return explain_in(scenario, work, at)


def explain_in(scenario: Scenario, work: int | str, at: float | None = None, *, progress: bool = False) -> Explained:
    """Explain why a job or a task of a scenario waits; parameters and errors as of :func:`explain`."""
    kind = scenario.kind.name
    if kind not in _KINDS:
        raise InputError(f"must be one of {', '.join(_KINDS)}, got a {kind}", place="platform")
    return _KINDS[kind](scenario, work, at, progress)


def _on_a_cluster(scenario: Scenario, work: int | str, at: float | None, progress: bool) -> Explanation:
    policy = scenario.policy

    def make() -> Simulation:
        return scenario.start(progress=progress)

    return explain_job(make, work, at, None if policy is None or isinstance(policy, str) else policy)


def _on_a_machine(scenario: Scenario, work: int | str, at: float | None, progress: bool) -> TaskExplanation:
    if at is not None:
        raise InputError(f"must be None for a task, whose whole wait is explained, got {at!r}", place="at")
    return explain_task(scenario, work)


def _at_a_broker(scenario: Scenario, work: int | str, at: float | None, progress: bool) -> ChoiceExplanation:
    if at is not None:
        raise InputError(f"must be None for a job of a broker, whose choice is explained, got {at!r}", place="at")
    return explain_choice(scenario, work)


@attrs.frozen(eq=False, repr=False)
class TaskExplanation(Told):
    """Why a task of a machine waited.

    Attributes
    ----------
    task, processor
        the task, and the processor that it was assigned to
    submit, start
        its submission, and the begin of its execution; nan: not reached
    unit
        of times
    spans
        what it waited for in between: see :func:`~simmodel.metrics.task_waits.task_waits`
    changes
        another processor, or a larger memory pool, with which it starts earlier, confirmed by running all again
    told
        the reasons that the policy gave with its decisions on the task: ``time`` (s), ``decision``, ``reason``
    """

    task: int | str
    processor: str
    submit: float
    start: float
    unit: str
    spans: Table
    changes: tuple[Change, ...] = ()
    told: Table = attrs.field(factory=lambda: told_of([], ""))

    def _lines(self) -> Iterator[str]:
        waits = self.start - self.submit
        unit = " s" if self.unit == "s" else ""
        when = f"starts at {self.start:.10g}{unit}, {waits:.10g}{unit} after its submission"
        yield f"task {self.task} on {self.processor or 'no processor'}: {when if waits == waits else 'has not started'}"
        for change in self.changes:
            yield f"  {change.text}"
        called = {"since": "since (s)", "until": "until (s)", "time": "at (s)"} if unit else {}
        yield from table_lines("what it waited for", self.spans, called)
        yield from table_lines("what the policy said", self.told, called)

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        names = ("task", "processor", "submit", "start", "unit")
        plain: dict[str, Any] = {name: getattr(self, name) for name in names}
        plain["changes"] = [each._asdict() for each in self.changes]
        return plain | {name: list(getattr(self, name).rows()) for name in ("spans", "told")}

    def _cells(self) -> Cells:
        rows = [["", ""], ["task", str(self.task)], ["processor", self.processor], ["start", f"{self.start:.10g}"]]
        rows += [[f"{row['reason']} {row['by']}", f"{row['until'] - row['since']:.10g}"] for row in self.spans.rows()]
        return [*rows, *([f"change of {each.what}", each.text] for each in self.changes)]

    def __repr__(self) -> str:
        return f"<TaskExplanation of {self.task}: {len(self.spans)} waits>"

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw what the task waited for over time, and who held it."""
        from simmodel.view.referee_plots import waits_of_a_task

        rows = [
            (float(row["since"]), float(row["until"]), str(row["reason"]), str(row["by"])) for row in self.spans.rows()
        ]
        name = f"Why task {self.task} waited" if title is None else title
        return waits_of_a_task(rows, self.submit, title=name, figsize=figsize, style=style, save=save)


def explain_task(scenario: Scenario, task: int | str) -> TaskExplanation:
    """Run a scenario of a machine, and explain why a task waited until it started.

    Parameters
    ----------
    scenario
        its policy is run again with the task on other processors, and with larger memory pools
    task
        the id of a task; of several with this id, the first

    Raises
    ------
    InputError
        the task is unknown
    """
    result: MachineResult = scenario.run()
    row = row_of_task(result, task)
    spans = _with_refusals(scenario, task_waits(result, task), task)
    tasks = result.tasks
    found = TaskExplanation(
        task=tasks["task"].tolist()[row],
        processor=str(tasks["processor"][row]),
        submit=float(tasks["submit"][row]),
        start=float(tasks["start"][row]),
        unit=result.time_unit,
        spans=spans,
        told=told_of([] if result.reasons is None else list(result.reasons.rows()), task),
    )
    if not found.start > found.submit:
        return found
    again = _Again(scenario, row, found)
    return attrs.evolve(found, changes=(*again.elsewhere(result), *again.more_memory()))


def _with_refusals(scenario: Scenario, spans: Table, name: int | str) -> Table:
    """Return the waits, with the reason of the processor's model where it did not admit the task to its free cores."""
    reasons, held_by = spans["reason"].tolist(), spans["by"].tolist()
    queued = [i for i, reason in enumerate(reasons) if reason in ("processor", "order")]
    if not any(isinstance(each.model, str) for each in scenario.platform.processors) or not queued:
        return spans
    simulation = scenario.start()
    machine = cast("Machine", simulation.system)
    for i in queued:
        simulation.run((float(spans["since"][i]) + float(spans["until"][i])) / 2)
        task = next((each for each in machine.tasks if str(each.id) == str(name)), None)
        if task is not None and task.place is not None and (held := task.place.held_by(task)):
            held_by[i] = f"{held_by[i]} ({held})".strip()
    return Table({each: spans[each] for each in ("since", "until", "reason")} | {"by": np.array(held_by)})


class _Again:
    """Runs a scenario again with one thing changed."""

    def __init__(self, scenario: Scenario, row: int, found: TaskExplanation) -> None:
        self.scenario = scenario
        self.row = row
        self.found = found

    def start(self, **changes: Any) -> float:
        """Return the start of the task in a changed scenario; ``inf``: it never starts, or the change is impossible."""
        try:
            result = attrs.evolve(self.scenario, **changes).run()
        except (InputError, ImpossibleWork, Stalled):
            return inf
        at = float(result.tasks["start"][self.row])
        return at if at == at else inf

    def elsewhere(self, result: MachineResult) -> Iterator[Change]:
        """Yield the processor on which the task starts earliest, if that is earlier than it did."""
        given = self.scenario.policy or self.scenario.kind.policy
        best: tuple[float, str] | None = None
        for name in _candidates(result, self.row, self.found.processor):
            at = self.start(policy=Redirected(policy_of(given).fresh(), self.found.task, name))
            if at < (self.found.start if best is None else best[0]):
                best = at, name
        if best is not None:
            yield Change("processor", best[1], f"on {best[1]} it would start at {self._at(best[0])}")

    def more_memory(self) -> Iterator[Change]:
        """Yield the least size of its pool (whole MB) with which it starts earlier, if it waited for room."""
        if not (self.found.spans["reason"] == "memory").any():
            return
        spec = self.scenario.platform
        kind = next(each for name, each in spec.each_processor() if name == self.found.processor)
        (number,) = (i for i, pool in enumerate(spec.pools) if pool.name == kind.pool)
        size = spec.pools[number].size

        def starts_at(megabytes: int) -> float:
            pools = list(spec.pools)
            pools[number] = attrs.evolve(pools[number], size=float(megabytes * MEGABYTE))
            return self.start(platform=attrs.evolve(spec, pools=pools))

        def as_late(megabytes: int) -> bool:
            return not starts_at(megabytes) < self.found.start

        now = ceil(size / MEGABYTE)
        enough = next((now << power for power in range(1, 5) if not as_late(now << power)), None)
        if enough is None:
            return
        least = (largest(as_late, enough - 1, least=now) or now) + 1
        text = show_quantity(float(least * MEGABYTE), "B")
        at = self._at(starts_at(least))
        yield Change("memory", float(least * MEGABYTE), f"with {text} in {kind.pool} it would start at {at}")

    def _at(self, at: float) -> str:
        unit = " s" if self.found.unit == "s" else ""
        return f"{at:.10g}{unit}, {self.found.start - at:.10g}{unit} earlier"


def _candidates(result: MachineResult, row: int, processor: str) -> list[str]:
    """Return processors on which a task may start earlier: those that can run it, the first to be free for it first."""
    names = result.processors["processor"].tolist()
    kinds = [number for number, kind in enumerate(result.spec.processors) for _ in range(kind.count)]
    tasks = result.tasks
    ready = float(tasks["ready"][row])
    free = []
    for name, kind in zip(names, kinds, strict=True):
        run = float(result.kind_runs[row, kind])
        if name != processor and np.isfinite(run):
            here = (tasks["processor"] == name) & (result.moments[2] <= ready) & (result.moments[-1] > ready)
            free.append((float(tasks["end"][here].max(initial=ready)), run, names.index(name), name))
    return [name for *_, name in sorted(free)[:_TRIED]]


Explained: TypeAlias = "Explanation | TaskExplanation | ChoiceExplanation"
_KINDS: dict[str, Callable[[Scenario, int | str, float | None, bool], Explained]] = {
    "cluster": _on_a_cluster,
    "machine": _on_a_machine,
    "broker": _at_a_broker,
    "grid": _at_a_broker,
}
