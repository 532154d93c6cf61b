"""Log records of the twin: one JSON object a line, each with the context of the part that wrote it."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from simmodel.extending import clipped

__all__ = ["Log", "start_logging", "stop_logging"]

_ROOT = "simmodel_site.twin"
_LONGEST = 1000  # characters of a value; names of jobs can be a megabyte


class Log:
    """Writes the records of one part of the twin; keywords are values that the record keeps beside its sentence.

    Parameters
    ----------
    part
        the name of the part; its logger is ``simmodel_site.twin.PART``
    context
        the values that all of its records have, such as ``cluster="alps"``

    >>> Log("stream", cluster="alps").bound(key="events")
    Log('stream', cluster='alps', key='events')
    """

    def __init__(self, part: str, **context: object) -> None:
        self._part = part
        self._context = context
        self._logger = logging.getLogger(f"{_ROOT}.{part}")

    def __repr__(self) -> str:
        return f"Log({', '.join([repr(self._part), *(f'{key}={each!r}' for key, each in self._context.items())])})"

    def bound(self, **context: object) -> Log:
        """Return a log of the same part with more context."""
        return Log(self._part, **(self._context | context))

    def debug(self, sentence: str, **context: object) -> None:
        """Write a record that only a search for an error needs."""
        self._write(logging.DEBUG, sentence, context)

    def info(self, sentence: str, **context: object) -> None:
        """Write a record of normal operation."""
        self._write(logging.INFO, sentence, context)

    def warning(self, sentence: str, **context: object) -> None:
        """Write a record of a problem that does not stop the twin."""
        self._write(logging.WARNING, sentence, context)

    def error(self, sentence: str, **context: object) -> None:
        """Write a record of a failure that lasts until somebody helps."""
        self._write(logging.ERROR, sentence, context)

    def _write(self, level: int, sentence: str, context: dict[str, object]) -> None:
        self._logger.log(level, "%s", sentence, extra={"context": self._context | context})


class _Lines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "part": record.name.removeprefix(f"{_ROOT}."),
            "message": clipped(record.getMessage(), _LONGEST),
        }
        for key, each in getattr(record, "context", {}).items():
            plain = each if each is None or isinstance(each, bool | int | float) else clipped(each, _LONGEST)
            found.setdefault(key, plain)
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps(found)


def start_logging(
    level: Literal["debug", "info", "warning", "error"] = "info", file: str | Path | None = None
) -> logging.Handler:
    """Write the twin's records as lines of JSON to standard error or a file, and return the handler that does.

    A handler that an earlier call made is replaced.
    """
    logger = logging.getLogger(_ROOT)
    for each in [each for each in logger.handlers if isinstance(each.formatter, _Lines)]:
        stop_logging(each)
    handler = logging.StreamHandler() if file is None else logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(_Lines())
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
    return handler


def stop_logging(handler: logging.Handler) -> None:
    """Write no more records through a handler of :func:`start_logging`."""
    logger = logging.getLogger(_ROOT)
    logger.removeHandler(handler)
    logger.propagate = True
    handler.close()
