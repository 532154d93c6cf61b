"""All that the watching twin runs of PBS: a fixed list of commands, each of which only reads, and their JSON.

What they print not always is JSON: it is read as texts, and repaired where users' texts have broken it. Releases
differ in their errors (OpenPBS pull requests 830, 2049 and 2603): escapes that JSON does not know (``\'``, ``\\,``),
values that only look like numbers (``005``, ``.5``, ``inf``), quotes within a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias, cast

from simmodel import InputError
from simmodel.extending import shown
from simmodel_site.twin.pbs.values import pbs_id
from simmodel_site.twin.programs import Commands, ProgramError

__all__ = ["READS", "Document", "PbsCommands", "PbsError", "Value", "read_document", "table_of", "text_of"]


Value: TypeAlias = "str | list[Value] | dict[str, Value] | None"
"""A value in an answer; numbers are texts, as they were written."""

Document: TypeAlias = Mapping[str, Value]

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"{}\[\],:]+', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LINE = re.compile(r'(\s*"[^"]*"\s*:\s*)"(.*)"(,?\s*)')
_QUOTE = re.compile(r'(\\.)|"', re.DOTALL)


def read_document(text: str, source: str | None = None) -> Document:
    """Return the document in an answer; numbers stay texts, and of a repeated key the first value counts.

    Raises
    ------
    InputError
        it cannot be read as one JSON object

    >>> read_document('{"Jobs": {"7.pbs": {"Job_Name": 007, "comment": "it\\\\\\'s", "Priority": 3}}}')
    {'Jobs': {'7.pbs': {'Job_Name': '007', 'comment': "it's", 'Priority': '3'}}}
    """
    error: ValueError | None = None
    for attempt in (text, _repaired, _with_quotes):
        try:
            found = _parsed(attempt if isinstance(attempt, str) else attempt(text))
        except RecursionError:
            raise InputError("is nested too deeply", source) from None
        except ValueError as each:
            error = error or each
        else:
            if not isinstance(found, dict):
                raise InputError(f"must be one JSON object, got {shown(found)}", source)
            return found
    raise InputError(f"invalid JSON: {error}", source)


def _parsed(text: str) -> Value:
    found = json.loads(text, strict=False, object_pairs_hook=_table, parse_int=str, parse_float=str, parse_constant=str)
    return cast(Value, found)


def _table(pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for key, value in pairs:
        before = found.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            found[key] = {**value, **before}
        else:
            found.setdefault(key, value)
    return found


def _repaired(text: str) -> str:
    """Return a text whose escapes and bare values are those of JSON."""
    return _TOKEN.sub(_token, text)


def _token(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == '"':
        return _ESCAPE.sub(lambda each: each[0] if each[1] in '"\\/bfnrt' or len(each[1]) > 1 else each[1], token)
    return token if token in ("true", "false", "null") or _NUMBER.fullmatch(token) else json.dumps(token)


def _with_quotes(text: str) -> str:
    """Return a text, one line for each value, in which all quotes within a value are escaped."""
    lines = []
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            line = f'{match[1]}"{_QUOTE.sub(lambda each: each[1] or chr(92) + chr(34), match[2])}"{match[3]}'
        lines.append(line)
    return _repaired("\n".join(lines))


def text_of(values: Document, name: str) -> str:
    """Return a text, empty if there is none; a truth is ``True`` or ``False``, as PBS writes it."""
    given: object = values.get(name)
    if isinstance(given, list | dict):
        raise InputError(f"must be a text, got {shown(given)}", place=name)
    return "" if given is None else str(given)


def table_of(values: Document, name: str) -> Document:
    """Return a table of values by name, empty if there is none."""
    given = values.get(name)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InputError(f"must be an object, got {shown(given)}", place=name)
    return given


READS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "jobs": ("qstat", "-f", "-t", "-F", "json"),
        "job": ("qstat", "-f", "-F", "json"),
        "ended": ("qstat", "-x", "-f", "-F", "json"),
        "nodes": ("pbsnodes", "-a", "-F", "json"),
        "server": ("qstat", "-B", "-f", "-F", "json"),
        "queues": ("qstat", "-Q", "-f", "-F", "json"),
    }
)
"""All that the twin ever reads of PBS, by name; ``job`` and ``ended`` take ids of jobs."""


class PbsError(ProgramError):
    """A command of PBS is missing, does not answer, or answers with an error."""


class PbsCommands(Commands):
    """PBS's commands on this computer, those that read, in UTC: they write times in the zone of their environment.

    >>> PbsCommands(folder="/nowhere").read("server")
    Traceback (most recent call last):
    ...
    simmodel_site.twin.pbs.commands.PbsError: /nowhere/qstat: not found; the twin needs PBS's client commands
    """

    scheduler = "PBS"
    error = PbsError
    conf_variable = "PBS_CONF_FILE"
    fixed = MappingProxyType({"TZ": "UTC"})
    reads = READS
    of_jobs = frozenset(("job", "ended"))
    word_of = staticmethod(pbs_id)

    def document(self, name: str, jobs: Iterable[int | str] = ()) -> Document:
        """Run a command as :meth:`read` does, and return the document that it prints.

        Raises
        ------
        PbsError
            the command is missing, fails, takes too long, or prints no JSON
        """
        text = self.read(name, jobs)
        if not text.strip():  # some releases print nothing where there are no jobs
            return {}
        try:
            return read_document(text)
        except InputError as error:
            raise PbsError(f"{' '.join(READS[name])}: {error}") from None
