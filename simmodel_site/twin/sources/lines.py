"""Events from a file of JSON lines, or from a folder of such files, read as they grow."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import attrs

from simmodel import InputError
from simmodel.extending import Fields, shown
from simmodel_site.twin.events import Event, StateReport, event_of
from simmodel_site.twin.sources import Refused

__all__ = ["LinesSettings", "LinesSource"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05  # seconds between looks at the files
_LONGEST = 1 << 28  # bytes of a line


@attrs.frozen(repr=False)
class LinesSettings(Fields):
    """The settings of a source of JSON lines.

    Parameters
    ----------
    path
        a file, or a folder whose files ending in ``.jsonl`` are read in the order of their names
    follow
        whether to go on reading as the files grow; else the source is over at their end
    """

    path: str
    follow: bool = True

    def open(self, cluster: str, folder: Path) -> LinesSource:
        return LinesSource(folder / self.path, cluster, follow=self.follow)


class LinesSource:
    """Reads events from JSON lines; a malformed line is counted and skipped.

    Parameters
    ----------
    path
        a file, or a folder whose files ending in ``.jsonl`` are read in the order of their names; need not exist yet
    cluster
        the name of the cluster
    follow
        whether to go on reading as the files grow; else the source is over at their end

    Attributes
    ----------
    refused
        the malformed lines, counted by sentence

    A file that has become shorter, or that another one has replaced, is read again from its beginning.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "events.jsonl")
    ...     _ = path.write_text('{"kind": "passed", "cluster": "alps", "time": 5}\\nnonsense\\n')
    ...     source = LinesSource(path, "alps", follow=False)
    ...     list(source.events(1.0)), source.refused.total(), source.over
    ([Passed(cluster='alps', time=5.0)], 1, True)
    """

    def __init__(self, path: str | Path, cluster: str, *, follow: bool = True) -> None:
        self.path = Path(path)
        self.cluster = cluster
        self.follow = follow
        self.refused = Refused()
        self._files: dict[str, _Tail] = {}
        self._ended = False

    def __repr__(self) -> str:
        return f"<LinesSource {self.path}>"

    def report(self) -> StateReport | None:
        """Return ``None``: reports come as events, if at all."""
        return None

    def events(self, timeout: float) -> Iterator[Event]:
        """Yield the events of the lines completed since the last call, waiting at most ``timeout`` seconds for one."""
        until = monotonic() + timeout
        pause = _FIRST_PAUSE
        while True:
            found = False
            for name in self._names():
                tail = self._files.setdefault(name, _Tail(self.path / name if name else self.path))
                for line in tail.lines(self.refused, whole=not self.follow):
                    found = True
                    try:
                        event = event_of(line)
                    except InputError as error:
                        self.refused.count(error)
                    else:
                        yield event
            if not self.follow:
                self._ended = True
                return
            if found:
                return
            left = until - monotonic()
            if left <= 0:
                return
            sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _names(self) -> list[str]:
        if not self.path.is_dir():
            return [""]
        with os.scandir(self.path) as found:
            return sorted(each.name for each in found if each.name.endswith(".jsonl"))

    def position(self) -> str:
        """Return the bytes read of each file."""
        return json.dumps({name: [tail.file, tail.at] for name, tail in sorted(self._files.items())})

    def resume(self, position: str | None) -> None:
        """Continue after a position; ``None``: from the beginning.

        Raises
        ------
        InputError
            it is not a position of such a source
        """
        self._files.clear()
        try:
            for name, (file, at) in json.loads(position or "{}").items():
                tail = _Tail(self.path / name if name else self.path)
                tail.file, tail.at = int(file), int(at)
                self._files[name] = tail
        except (ValueError, TypeError, AttributeError):
            raise InputError(f"must be a position in files of lines, got {shown(position)}", place="position") from None

    @property
    def over(self) -> bool:
        """Whether it does not follow, and all lines have been read."""
        return self._ended

    def close(self) -> None:
        """Let go of the files, which are open only while they are read."""


class _Tail:
    """The complete lines of one file from a place on.

    ``file``: its number in the file system; ``at``: bytes read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = 0
        self.at = 0
        self._skipping = False  # the rest of a line that is too long

    def lines(self, refused: Refused, *, whole: bool) -> Iterator[bytes]:
        """Yield the lines completed since the last call; ``whole``: the last line needs no end."""
        try:
            about = os.stat(self.path)
            if about.st_ino != self.file or about.st_size < self.at:
                self.file, self.at = about.st_ino, 0
            if about.st_size == self.at:
                return
            file = open(self.path, "rb")  # noqa: SIM115 (closed below, also if the caller stops)
        except FileNotFoundError:  # not yet there
            return
        except OSError as error:
            refused.count(f"{self.path}: cannot be read: {error.strerror}")
            return
        with file:
            file.seek(self.at)
            while line := file.readline(_LONGEST):
                complete = line.endswith(b"\n")
                if not complete and not whole and len(line) < _LONGEST:
                    return
                self.at += len(line)
                skipped, self._skipping = self._skipping, not complete and len(line) == _LONGEST
                if self._skipping and not skipped:
                    refused.count(f"{self.path}: line longer than {_LONGEST:,} bytes")
                if not (skipped or self._skipping) and line.strip():
                    yield line
