"""One action on a scheduler: look, send, look again."""

from __future__ import annotations

from typing import NamedTuple

from simmodel.twin.acting.actions import HELD, PREFERRED, Action, Hands, HandsError, JobNow, Outcome

__all__ = ["Restored", "perform", "read_back", "restore"]


def perform(hands: Hands, action: Action) -> Outcome:
    """Do an action if it still makes sense, and return what came of it, as read back.

    It may be repeated: what is done already is not sent again.
    """
    try:
        before = hands.look(action.job)
        if before is not None and before.submit == action.submit and _as_wanted(before, action):
            return Outcome(number=action.number, what="already")
        why = _why_not(before, action)
        if why:
            return Outcome(number=action.number, what="refused", sentence=why)
        hands.send(action.command, action.job, action.value)
        after = hands.look(action.job)
    except HandsError as error:
        return Outcome(number=action.number, what="failed", sentence=str(error))
    if after is None or _as_wanted(after, action):
        return Outcome(number=action.number, what="done")
    return Outcome(number=action.number, what="failed", sentence=f"sent, but found {_told(after)} afterwards")


def read_back(hands: Hands, action: Action) -> Outcome:
    """Return what came of an action of which it is not known whether it was sent."""
    try:
        job = hands.look(action.job)
    except HandsError as error:
        return Outcome(number=action.number, what="failed", sentence=str(error))
    if job is None or job.submit != action.submit or _as_wanted(job, action):
        return Outcome(number=action.number, what="done", sentence="found after a restart")
    return Outcome(number=action.number, what="late", sentence="not sent before a restart")


def _as_wanted(job: JobNow, action: Action) -> bool:
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
    if action.command == "release":
        return "" if job.mark == HELD else "the job was not held for a twin"
    if action.command == "unprefer":
        return "" if job.mark == PREFERRED else "the job was not moved by a twin"
    if job.mark not in ("", PREFERRED) or (job.preference and not job.mark):
        return "its priority or its note is somebody else's"
    return ""


def _told(job: JobNow) -> str:
    return f"held={job.held}, preference={job.preference}, mark={job.mark!r}"


class Restored(NamedTuple):
    """How many jobs were given back to the scheduler, how many could not be, and the first reason."""

    jobs: int
    failed: int = 0
    why: str = ""


def restore(hands: Hands) -> Restored:
    """Give all jobs with a mark of a twin back to the scheduler: none is held or preferred any more."""
    done, failed = 0, []
    try:
        jobs = hands.marked()
    except HandsError as error:
        return Restored(0, 1, str(error))
    for job in jobs:
        if not (job.held or job.mark == PREFERRED):
            continue
        try:
            if job.held and job.mark == HELD:
                hands.send("release", job.job)
            elif job.mark == PREFERRED:
                hands.send("unprefer", job.job)
            else:
                continue
        except HandsError as error:
            failed.append(str(error))
        else:
            done += 1
    return Restored(done, len(failed), failed[0] if failed else "")
