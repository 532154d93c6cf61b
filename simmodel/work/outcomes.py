"""How a job's run ends when it comes to its own end, and the words and numbers that logs have for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.errors import InputError, shown
from simmodel.work.table import Table, Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ACCEPTED", "OUTCOMES", "STATUS_OF", "leave_queue", "outcome_in", "outcomes_in"]

OUTCOMES = ("completed", "timeout", "failed", "cancelled", "node-failure", "out-of-memory")
"""The ways in which a run ends by itself."""

ACCEPTED = f"{', '.join(OUTCOMES)} (or a state of Slurm, or a status of SWF)"
"""What a job's end is told by, in words for errors."""

STATUS_OF = {"completed": 1, "cancelled": 5, "": -1}
"""The status in SWF by outcome; all others are 0, failed."""

_WORDS: Mapping[str, str] = {
    "completed": "complete done success successful succeeded finished ok completed-successfully cd",
    "timeout": "deadline walltime-reached completed-walltime-reached to dl",
    "failed": "failure fail error completed-failed f",
    "cancelled": (
        "canceled killed completed-killed revoked preempted withdrawn requeued requeue-fed requeue-hold resizing "
        "ca rv pr rq rs"
    ),
    "node-failure": "node-fail boot-fail launch-failed reconfig-fail lost nf bf",
    "out-of-memory": "oom",
    "": (
        "unknown none n-a waiting pending running suspended completing "
        "configuring stopped signaling stage-out special-exit resv-del-hold held blocked unsubmitted not-submitted "
        "submitted rejected pd r s cg cf"
    ),
}
"""States in Slurm, PBS, Batsim and results, by outcome; those that are no end have none."""
_OUTCOME = {word: outcome for outcome, words in _WORDS.items() for word in (outcome, *words.split())}
_BY_NUMBER = {1: "completed", 0: "failed", 5: "cancelled"}


def outcome_in(text: str) -> str:
    """Return the outcome that a word or a number of SWF stands for; empty: none, such as of a job that still runs.

    Case does not matter, nor who did it (``CANCELLED by 5``), nor that sacct cut it off (``OUT_OF_ME+``).

    Raises
    ------
    InputError
        it is no such word

    >>> outcome_in("NODE_FAIL"), outcome_in("CANCELLED by 5"), outcome_in("0"), outcome_in("RUNNING")
    ('node-failure', 'cancelled', 'failed', '')
    """
    if re.fullmatch(r"-?\d+(\.0)?", text):
        return _BY_NUMBER.get(int(float(text)), "")
    word = re.sub(r"[\s_/-]+", "-", text.strip().lower())
    cut = next((known for known in _OUTCOME if known.startswith(word[:-1])), "?") if word.endswith("+") else word
    found = _OUTCOME.get(cut.partition("-by-")[0])
    if found is None:
        raise InputError(f"must be {ACCEPTED}, got {shown(text)}")
    return found


def outcomes_in(table: Table) -> Words | None:
    """Return how the run of each job of a log ended; ``None``: all completed, as far as is known.

    The column ``outcome`` tells it, else ``status``; a job that completed with an exit code above 0 failed.

    Raises
    ------
    InputError
        a word in these columns is not known

    >>> outcomes_in(Table({"status": np.array([1, 0, 5])}))
    array(['completed', 'failed', 'cancelled'], dtype='<U13')
    """
    codes = np.zeros(len(table), dtype=np.uint8)
    for name in ("status", "outcome"):
        column = table[name] if name in table else codes[:0]
        if len(column) and column.dtype.kind in "iuf":
            for number, outcome in _BY_NUMBER.items():
                codes[column == number] = OUTCOMES.index(outcome)
        elif len(column):
            words = Words.of(column)
            known = [_read(word, name) for word in words.words]
            found = np.array([OUTCOMES.index(word or "completed") for word in known], dtype=np.uint8)[words.codes]
            told = np.array([bool(word) for word in known])[words.codes]
            codes[told] = found[told]
    if "exit_code" in table:
        codes[(codes == 0) & (np.nan_to_num(table["exit_code"]) > 0)] = OUTCOMES.index("failed")
    return Words(codes, OUTCOMES) if codes.any() else None


def leave_queue(columns: dict[str, NDArray[Any]], left: NDArray[Any] | None = None) -> None:
    """Have the jobs of a log that were cancelled while they waited never run: they get ``cancel``, and no wait or run.

    These are the cancelled ones with a run time of 0 or none that are known to have ``left`` at an instant (s), by
    default after their wait.

    >>> jobs = {"submit": np.array([5.0]), "wait": np.array([7.0]), "run": np.zeros(1), "status": np.array([5])}
    >>> leave_queue(jobs); jobs["cancel"], jobs["run"]
    (array([12.]), array([nan]))
    """
    told = outcomes_in(Table(columns))
    if told is None:
        return
    unknown = np.full(len(told), np.nan)
    if left is None:
        left = columns["submit"] + columns.get("wait", unknown)
    gone = (told == "cancelled") & ~(columns["run"] > 0) & (left >= columns["submit"])
    if gone.any():
        cancel = columns.get("cancel", unknown)
        columns["cancel"] = np.where(gone & np.isnan(cancel), left, cancel)
        for name in columns.keys() & {"run", "wait"}:
            columns[name] = np.where(gone, np.nan, columns[name])


def _read(word: str, column: str) -> str:
    try:
        return "" if word in ("", "nan") else outcome_in(word)
    except ValueError as error:
        raise InputError(str(error), place=column) from None
