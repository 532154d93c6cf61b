"""One action on a scheduler: look, send, look again."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from simmodel.twin.acting.actions import HELD, PREFERRED, Action, Command, Hands, HandsError, JobNow, Outcome

__all__ = ["Restored", "perform", "read_back", "restore"]


def perform(hands: Hands, action: Action) -> Outcome:
    """Do an action if it still makes sense, and return its outcome, as read back.

    It may be repeated: an action that is done already is not sent again.
    """
    try:
        before = hands.look(action.job)
        if before is not None and before.submit == action.submit and _as_wanted(before, action):
            return Outcome(number=action.number, what="already")
        why = _why_not(before, action)
        if before is None or why:
            return Outcome(number=action.number, what="refused", sentence=why)
        trouble = _sent(hands, before, action.command, action.value)
        after = hands.look(action.job)
    except HandsError as error:
        return Outcome(number=action.number, what="failed", sentence=str(error))
    if trouble:
        return _not_taken(action, after, trouble)
    if after is None or _as_wanted(after, action):
        return Outcome(number=action.number, what="done")
    return Outcome(number=action.number, what="failed", sentence=f"sent, but found {_told(after)} afterwards")


def _sent(hands: Hands, job: JobNow, command: Command, value: int = 0) -> str:
    """Send a command; return the sentence with which the scheduler refuses it, or ``""``."""
    try:
        hands.send(command, job.job, job.recorded if command == "release" else value)
    except HandsError as error:
        return str(error)
    return ""


def _not_taken(action: Action, job: JobNow | None, trouble: str) -> Outcome:
    """Return the outcome of a rejected command: ``"refused"`` if the job rules it out by now, else ``"failed"``."""
    why = _why_not(job, action)
    return Outcome(number=action.number, what="refused" if why else "failed", sentence=why or trouble)


def read_back(hands: Hands, action: Action) -> Outcome:
    """Return the outcome of an action that may have been sent or not, by the present state of its job."""
    try:
        job = hands.look(action.job)
    except HandsError as error:
        return Outcome(number=action.number, what="failed", sentence=str(error))
    if job is None or job.submit != action.submit or _as_wanted(job, action):
        return Outcome(number=action.number, what="done", sentence="found after a restart")
    return Outcome(number=action.number, what="late", sentence="not sent before a restart")


def _as_wanted(job: JobNow, action: Action) -> bool:
    if job.changed:
        return False
    if action.command == "release":
        return not job.held
    return job.preference == action.value and job.mark == (PREFERRED if action.value else "")


def _why_not(job: JobNow | None, action: Action) -> str:
    """Return why an action must not be done, or ``""``."""
    if job is None:
        return "the job is not known any more"
    if job.submit != action.submit:
        return f"the id belongs to another job now, submitted at {job.submit:g} s"
    if not job.waiting:
        return "the job does not wait any more"
    if job.changed:
        return job.changed
    if action.command == "release":
        return "" if job.mark == HELD else "the job was not held for a twin"
    if action.command == "unprefer":
        return "" if job.mark == PREFERRED else "the job was not moved by a twin"
    if job.mark not in ("", PREFERRED) or (job.preference and not job.mark):
        return "its priority or its note is somebody else's"
    return ""


def _told(job: JobNow) -> str:
    found = f"held={job.held}, preference={job.preference}, mark={job.mark!r}"
    return f"{found}: {job.changed}" if job.changed else found


class Restored(NamedTuple):
    """How many jobs were given back to the scheduler, how many could not be, and the first reason.

    Attributes
    ----------
    jobs, failed, why
        as above
    left
        the jobs that stay as their users or administrators have changed them, each with the change
    """

    jobs: int
    failed: int = 0
    why: str = ""
    left: tuple[str, ...] = ()


def restore(hands: Hands, moved: Mapping[tuple[int | str, float], int] = MappingProxyType({})) -> Restored:
    """Give all jobs with a mark of a twin back to the scheduler: none is held or preferred for the twin any more.

    Each job is looked at immediately before it is given back; values that others have changed since are kept.

    Parameters
    ----------
    moved
        how far the twin has moved jobs forward, by id and submission (s): those whose mark others have replaced stay
        there, and this is said
    """
    done, failed, left = 0, [], []
    try:
        jobs = hands.marked()
    except HandsError as error:
        return Restored(0, 1, str(error))
    for job in jobs:
        if job.changed:
            left.append(f"job {job.job}: {job.changed}")
            continue
        command: Command = "release" if job.mark == HELD else "unprefer"
        if command == "release" and not job.held:
            continue
        try:
            now = hands.look(job.job)
            if now is None or now.submit != job.submit or not now.waiting:
                continue  # it has started, or is over
            if now.mark != job.mark and not now.changed:
                continue  # it is given back
            trouble = "" if now.changed else _sent(hands, now, command)
            after = hands.look(job.job) if trouble else now
        except HandsError as error:
            failed.append(str(error))
            continue
        if after is not None and after.changed:
            left.append(f"job {job.job}: {after.changed}")
        elif trouble and after is not None and after.waiting:
            failed.append(trouble)
        else:
            done += not trouble
    for (number, submit), value in moved.items():
        try:
            now = None if any(job.job == number for job in jobs) else hands.look(number)
        except HandsError as error:
            failed.append(str(error))
            continue
        if now is not None and (now.submit, now.waiting, now.preference) == (submit, True, value):
            left.append(f"job {number}: its mark is somebody else's, and it stays moved forward by {value}")
    return Restored(done, len(failed), failed[0] if failed else "", tuple(left))
