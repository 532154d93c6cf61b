"""Snapshots: the state of a system at one instant as a plain value, from which a simulation can be started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Fields, Shown
from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError, Plain, SnapshotError, WrongType, shown, unknown
from simmodel.foundation.loading import decode, one_sentence, parse_json, peek, read_bytes
from simmodel.scheduling.prediction import Predictor
from simmodel.scheduling.registry import imports_code
from simmodel.snapshots.types import Count, Instant, Keyed, Seed

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["PolicyState", "Snapshot", "check_policy_name", "is_snapshot", "read_document", "snapshot_of_document"]

FORMAT = "simmodel snapshot"


@attrs.frozen(repr=False)
class PolicyState(Fields):
    """The policy of a system: its name in results, the name it is made from (``None``: an object), and its state.

    ``due``: a decision is due at this instant; ``asked``: the policy asked to be woken even if no work waits.
    """

    name: str
    known_as: str | None
    state: Any = None
    due: bool = True
    asked: bool = False


_KINDS = Entries["type[Snapshot]"](
    {
        "cluster": "simmodel.snapshots.cluster:ClusterSnapshot",
        "machine": "simmodel.snapshots.machine:MachineSnapshot",
        "broker": "simmodel.snapshots.broker:BrokerSnapshot",
        "grid": "simmodel.snapshots.grid:GridSnapshot",
    }
)
"""The class of the snapshots of each kind of system."""


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class Snapshot(Shown):
    """A system at one instant: the common base of the snapshots of all kinds of systems.

    A subclass is an attrs class with typed fields that names its kind of system as ``system``; it is then read and
    written like the others.

    Parameters
    ----------
    name
        name of the system
    now
        the instant, s
    seed
        seed of its random streams
    policy
        the policy and its state
    streams
        random streams by name, with their states
    submitted
        number of jobs or tasks submitted or still to be submitted: the number of the next one

    >>> from simmodel import Cluster, Environment
    >>> snapshot = Cluster(Environment(5), 4).snapshot()
    >>> Snapshot.from_json(snapshot.to_json()) == snapshot
    True
    """

    system: ClassVar[str]
    schema: ClassVar[int] = 1

    name: str
    now: Instant
    seed: Seed = 0
    policy: PolicyState = PolicyState("fcfs", "fcfs")
    streams: Keyed[dict[str, Any]] = ()
    submitted: Count = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "system" in vars(cls):
            _KINDS[cls.system] = cls

    def _cells(self) -> Cells:
        rows = [["field", "value"]]
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            several = isinstance(value, Sized) and not isinstance(value, str)
            if not several:
                rows.append([field.name, str(value) if isinstance(value, str) else repr(value)])
            elif len(value):
                rows.append([field.name, f"{len(value):,}"])
        return rows

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name} at {self.now:g} s>"

    # ------------------------------------------------------------------ defaults that a kind may override

    def policy_names(self) -> Iterator[tuple[str, str | None]]:
        """Yield the place and the name of each of its own policies."""
        yield "policy.known_as", self.policy.known_as

    @property
    def below(self) -> tuple[Snapshot, ...]:
        """The snapshots of the systems below this one."""
        return ()

    @property
    def ids(self) -> list[int | str]:
        """The ids of the submitted work that has not ended, here and below."""
        return [name for each in self.below for name in each.ids]

    @property
    def unrequested(self) -> tuple[int | str, ...]:
        """The ids of the jobs that have not ended and request no time, here and below."""
        return tuple(name for each in self.below for name in each.unrequested)

    @property
    def begun(self) -> set[tuple[int | str, float]]:
        """The ids of the running work, here and below, each with its start (s)."""
        return {each for below in self.below for each in below.begun}

    @property
    def seconds(self) -> dict[int | str, float]:
        """The times (s) with which the submitted jobs that have not ended are planned, by id, here and below."""
        return {name: planned for below in self.below for name, planned in below.seconds.items()}

    def expected(self, *, actual: bool = False) -> Self:
        """Return the part that a what-if may see: no future arrivals, and expected instead of actual run times.

        With ``actual``, run times are kept.
        """
        return attrs.evolve(self, streams=(), seed=0)

    @property
    def unfinished(self) -> int:
        """The number of unfinished jobs or tasks, including those still to arrive."""
        return sum(each.unfinished for each in self.below)

    @property
    def tally(self) -> tuple[int, int]:
        """The numbers of running and of waiting jobs or tasks, here and below."""
        found = [each.tally for each in self.below]
        return sum(running for running, _ in found), sum(waiting for _, waiting in found)

    def reseeded(self) -> Self:
        """Return the snapshot without its random streams, which then start from another seed."""
        return attrs.evolve(self, streams=())

    def check(self) -> None:
        """Raise ``InputError`` if parts of the snapshot do not fit together."""

    # ------------------------------------------------------------------ equality and JSON

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the contents, as hexadecimal digits."""
        import hashlib

        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Snapshot) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def document(self) -> dict[str, Any]:
        """Return the document of a snapshot file: format, schema, system and contents."""
        return {"format": FORMAT, "schema": self.schema, "system": self.system, **_contents(self)}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the snapshot as JSON; write it to ``path`` if given, compressed if that ends in ``.gz``."""
        import json

        text = json.dumps(self.document(), separators=(",", ":"), allow_nan=False, default=_of_numpy)
        if path is not None:
            from simmodel.foundation.writing import write_text

            write_text(path, text + "\n", ".json")
        return text

    @classmethod
    def from_json(cls, given: str | Path, *, trust: bool = False) -> Self:
        """Return the snapshot from JSON text or a JSON file (``-``: standard input).

        With ``trust``, its policies and custom processors may be ``module:name``, which imports code.

        Raises
        ------
        InputError
            if it is not a snapshot of this kind and schema, or a value in it is invalid
        """
        document, source = read_document(given)
        found = snapshot_of_document(document, source, trust=trust)
        if not isinstance(found, cls):
            raise InputError(f"must be a snapshot of a {cls.system}, got one of a {found.system}", source, "system")
        return found


def _of_numpy(value: Any) -> Any:
    """Return a NumPy number, such as a job id, as a Python number."""
    if not isinstance(value, np.generic):
        if isinstance(value, Predictor):
            message = (
                f"predictor {value.name} cannot be written: it was passed as an object (register_predictor names it)"
            )
            raise SnapshotError(message)
        raise WrongType(f"must be a plain value, got {shown(value)}")
    return value.item()


def _kind_of(system: Plain) -> type[Snapshot]:
    if not isinstance(system, str) or system not in _KINDS:
        raise InputError(unknown("system", str(system), _KINDS).message, place="system")
    return _KINDS[system]


def _contents(snapshot: Snapshot) -> dict[str, Any]:
    """Return the fields of a snapshot as plain values: name, instant, seed and all that differ from their default."""
    return {"name": snapshot.name, "now": snapshot.now, "seed": snapshot.seed, **_codec().write_fields(snapshot)}


def _read_inside(values: Plain) -> Snapshot:
    """Return a nested snapshot; without a ``system`` it is that of a cluster."""
    if not isinstance(values, Mapping):
        raise InputError(f"must be a mapping, got {shown(values)}")
    return _of_values(dict(values), values.get("system", "cluster"))


def _write_inside(snapshot: Snapshot) -> dict[str, Any]:
    contents = _contents(snapshot)
    return contents if snapshot.system == "cluster" else {"system": snapshot.system, **contents}


def _of_values(values: dict[str, Plain], system: Plain) -> Snapshot:
    values.pop("system", None)
    snapshot: Snapshot = _codec().read_state(values, _kind_of(system))
    snapshot.check()
    return snapshot


@cache
def _codec() -> ModuleType:
    """Return the codec, imported when a snapshot is first read or written."""
    from simmodel.snapshots import codec

    codec.register_state(Snapshot, _read_inside, _write_inside)
    return codec


# ---------------------------------------------------------------------- documents


def is_snapshot(path: Path) -> bool:
    """Whether a file begins as a snapshot, by its content."""
    return path.is_file() and f'"{FORMAT}"'.encode() in peek(path)[:200]


def read_document(given: str | Path) -> tuple[dict[str, Any], str | None]:
    """Return the document from JSON text or a JSON file, and the name of the file.

    Raises
    ------
    InputError
        if the file does not exist, or the text is not JSON
    """
    text, source = str(given), None
    if isinstance(given, Path) or not text.lstrip().startswith("{"):
        data, source = read_bytes(given)
        text = decode(data)
    document = parse_json(text, source)
    if not isinstance(document, dict):
        raise InputError(f"must be a JSON object, got {type(document).__name__}", source)
    return document, source


def check_policy_name(name: Plain, place: str, *, trust: bool) -> None:
    """Raise ``InputError`` for the name of a policy from data that would import code, unless the data is trusted.

    >>> check_policy_name("portfolio(easy, mine:Policy)", "policy", trust=False)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: policy: must be a known policy, got 'portfolio(easy, mine:Policy)', ...
    pass trust=True (--trust) if you trust the file
    """
    if isinstance(name, str) and not trust and imports_code(name):
        hint = "which imports code: pass trust=True (--trust) if you trust the file"
        raise InputError(f"must be a known policy, got {shown(name)}, {hint}", place=place)


def _check_trust(snapshot: Snapshot) -> None:
    from simmodel.platform.toml import check_models

    for place, name in snapshot.policy_names():
        check_policy_name(name, place, trust=False)
    check_models(getattr(snapshot, "platform", None))
    for each in snapshot.below:
        _check_trust(each)


def snapshot_of_document(document: Mapping[str, Plain], source: str | None = None, *, trust: bool = False) -> Snapshot:
    """Return the snapshot from a document, of any kind of system.

    With ``trust``, its policies and custom processors may be ``module:name``, which imports code.

    Raises
    ------
    InputError
        if it is not a snapshot, or a value in it is invalid
    """
    values = dict(document)
    form, schema, system = (values.pop(name, None) for name in ("format", "schema", "system"))
    try:
        if form != FORMAT:
            raise InputError(f"must be {FORMAT!r}, got {shown(form)}", place="format")
        kind = _kind_of(system)
        if schema != kind.schema or type(schema) is not int:
            older = ", an older version" if isinstance(schema, int) and schema < kind.schema else ""
            raise InputError(f"must be {kind.schema}, got {shown(schema)}{older}", place="schema")
        with one_sentence(source):
            snapshot = _of_values(values, system)
        if not trust:
            _check_trust(snapshot)
        return snapshot
    except InputError as error:
        raise InputError(error.message, source, error.place) from None
