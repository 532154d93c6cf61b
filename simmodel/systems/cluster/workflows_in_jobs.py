"""Workflows inside jobs: each runs on a machine of its own in the nodes of its job."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform.machine import MachineSpec
from simmodel.systems.machine.system import Machine
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simpy.events import Event

    from simmodel.work.job import Job, LiveJob

__all__ = ["run_inside", "why_not_inside"]


def run_inside(env: Environment, job: LiveJob, spec: Job) -> Generator[Event, Any, None]:
    """Run the workflow of a job on a machine in its nodes: the body of the job.

    The machine ends with the job. Observers hear ``workflow_started(job, machine)``.
    """
    inside, flow = _checked(spec)
    with Machine(env, inside, spec.workflow_policy, name=f"{inside.name} of job {job.id}") as machine:
        job.place.tell("workflow_started", job, machine)
        yield machine.submit(flow)


def why_not_inside(spec: Job) -> str | None:
    """Return why the workflow of a job can never run inside its nodes, or ``None``.

    Raises
    ------
    InputError
        the job names no spec of a machine, or no workflow
    """
    inside, flow = _checked(spec)
    return Machine(Environment(), inside, spec.workflow_policy, record=False, begin=False).why_not(flow)


def _checked(spec: Job) -> tuple[MachineSpec, Workflow]:
    if not isinstance(spec.machine, MachineSpec):
        message = f"must be a MachineSpec (load_platform reads names and files), got {spec.machine!r}"
        raise InputError(message, place="machine")
    if not isinstance(spec.workflow, Workflow):
        raise InputError(f"must be a Workflow, got {spec.workflow!r}", place="workflow")
    return spec.machine, spec.workflow
