"""The configuration of a twin, from a TOML file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel import InputError
from simmodel.catalogue import bundled_names, load_platform
from simmodel.extending import (
    Fields,
    Plain,
    check_policy_name,
    inside,
    of_class,
    parse_quantity,
    parse_toml,
    read_bytes,
    shown,
    strict_converter,
)
from simmodel.platform import ClusterSpec
from simmodel.scheduling import policy
from simmodel_site.twin.acting.actions import ActSettings, Hands
from simmodel_site.twin.sources import ActingSource, SourceSettings, source_settings

if TYPE_CHECKING:
    from cattrs import Converter

    from simmodel_site.twin.sources import Source

__all__ = ["AdviseSettings", "ServeSettings", "TwinConfig", "read_config"]


def _positive(instance: Any, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not value > 0:
        raise InputError(f"must be a number > 0, got {value!r}", place=attribute.name)


def _not_negative(instance: Any, attribute: attrs.Attribute[Any], value: float) -> None:
    if not value >= 0:
        raise InputError(f"must be a number >= 0, got {value!r}", place=attribute.name)


def _one_of(*known: str) -> Callable[[Any, attrs.Attribute[Any], str], None]:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: str) -> None:
        if value not in known:
            raise InputError(f"must be {' or '.join(map(repr, known))}, got {shown(value)}", place=attribute.name)

    return check


@attrs.frozen(kw_only=True, repr=False)
class AdviseSettings(Fields):
    """The settings of advice: its policies, its timing and its worker processes.

    Parameters
    ----------
    policy
        the policy that advises, by name
    fallback
        the policy that decides if it fails or is late; default: the policy of the scheduler
    when
        ``"quiet"``: once no event has come for ``settle`` seconds after one that may let a job start;
        ``"passed"``: when the source says that an instant is over
    settle, every
        as above, and the least seconds between two decisions
    deadline
        seconds of a decision until the fallback decides; default: none
    workers
        processes that simulate; 1: this process, which checks the deadline after each simulated decision
    """

    policy: str = "portfolio"
    fallback: str | None = None
    when: Literal["quiet", "passed"] = attrs.field(default="quiet", validator=_one_of("quiet", "passed"))
    settle: float = attrs.field(default=0.05, validator=_not_negative)
    every: float = attrs.field(default=0.0, validator=_not_negative)
    deadline: float | None = attrs.field(default=None, validator=_positive)
    workers: int = attrs.field(default=1, validator=_positive)


@attrs.frozen(kw_only=True, repr=False)
class ServeSettings(Fields):
    """The port on 127.0.0.1 that serves status and metrics; 0: any free one.

    ``speed``: how many times faster than requested jobs run here, for questions where a job would end first.
    """

    port: int = attrs.field(default=0, validator=_not_negative)
    speed: float = attrs.field(default=1.0, validator=_positive)


@attrs.frozen(kw_only=True, repr=False)
class TwinConfig(Fields):
    """The configuration of a twin.

    Parameters
    ----------
    cluster
        the name of the cluster in events
    platform
        a file, or the name of a ready platform
    source
        the kind of the source and its settings (see :mod:`simmodel_site.twin.sources`)
    policy
        the policy of the scheduler that is followed
    audit
        the file of the audit log; default: none, then nothing is advised
    clock
        ``"wall"``: events have the time of this machine's clock; ``"events"``: they have a time of their own
    report_every
        seconds between full reports, from sources that give them
    advise
        the settings of advice; default: none is given
    serve
        where status and metrics are served; default: nowhere
    act
        the settings of actions on the cluster and their limits; default: nothing is done
    folder
        the folder of relative paths: that of the file
    """

    cluster: str
    platform: str
    source: Mapping[str, Any]
    policy: str = "fcfs"
    audit: str | None = None
    clock: Literal["wall", "events"] = attrs.field(default="wall", validator=_one_of("wall", "events"))
    report_every: float = attrs.field(default=60.0, validator=_positive)
    advise: AdviseSettings | None = None
    serve: ServeSettings | None = None
    act: ActSettings | None = None
    folder: str = "."

    def __attrs_post_init__(self) -> None:
        if self.advise is not None and self.audit is None:
            raise InputError("missing key: what is advised is written there", place="audit")
        self._checked("source", self.settings)
        self._checked("policy", lambda: policy(self.policy))
        advise = self.advise
        if advise is not None:
            self._checked("advise.policy", lambda: policy(advise.policy))
            self._checked("advise.fallback", lambda: policy(advise.fallback or self.policy))
        if self.act is not None and self.act.mode != "observe":
            if advise is None:
                raise InputError(f"missing table: mode {self.act.mode!r} needs decisions", place="advise")
            self._checked("act", self.hands)

    @staticmethod
    def _checked(place: str, read: Callable[[], object]) -> None:
        try:
            read()
        except InputError as error:
            raise inside(place, error) from None

    def settings(self) -> SourceSettings:
        """Return the settings of the source."""
        return source_settings(self.source)

    def open_source(self) -> Source:
        """Return the source.

        Raises
        ------
        SimmodelError
            it cannot be opened
        """
        return self.settings().open(self.cluster, Path(self.folder))

    def hands(self, *, restoring: bool = False) -> Hands:
        """Return the interface that acts on the cluster; ``restoring``: with the commands that give everything back.

        Raises
        ------
        InputError
            the source is not a scheduler that can be acted on
        """
        settings = self.settings()
        if not isinstance(settings, ActingSource):
            raise InputError(f"must be a scheduler that takes commands, got {self.source['kind']!r}", place="source")
        return settings.hands("observe" if self.act is None else self.act.mode, restoring=restoring)

    @property
    def now(self) -> Callable[[], float] | None:
        """The clock of this machine; ``None``: events have a time of their own."""
        return time if self.clock == "wall" else None

    def path(self, name: str) -> Path:
        """Return a path of the configuration."""
        return Path(self.folder) / name

    def spec(self, *, trust: bool = False) -> ClusterSpec:
        """Return the platform.

        Raises
        ------
        InputError
            it is unknown, or no cluster
        """
        found = self.platform if self.platform in bundled_names("platforms") else self.path(self.platform)
        return of_class(load_platform(found, trust=trust), ClusterSpec, "a cluster", "platform")


def read_config(path: str | Path, *, trust: bool = False) -> TwinConfig:
    """Return the configuration in a TOML file.

    Times may have units (``deadline = "500ms"``). With ``trust``, its policies may be ``module:name``, which imports
    code.

    Raises
    ------
    InputError
        the file is missing or no TOML, a key is unknown or missing, or a value is invalid

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "twin.toml")
    ...     _ = file.write_text('cluster = "alps"\\nplatform = "theta"\\n[source]\\nkind = "lines"\\npath = "events"')
    ...     read_config(file).settings()
    LinesSettings(path='events')
    """
    values, source = parse_toml(*read_bytes(path)), str(path)
    if "folder" in values:
        raise InputError("unknown key 'folder'", source, "folder")
    advise = values.get("advise")
    names = {"policy": values.get("policy")}
    if isinstance(advise, Mapping):
        names |= {f"advise.{key}": advise.get(key) for key in ("policy", "fallback")}
    try:
        for place, name in names.items():
            check_policy_name(name, place, trust=trust)
        found: TwinConfig = _converter().structure(values, TwinConfig)
    except InputError as error:
        raise InputError(error.message, source, error.place) from None
    return attrs.evolve(found, folder=str(Path(path).parent))


@cache
def _converter() -> Converter:
    converter = strict_converter(_in_seconds)
    converter.register_structure_hook_func(lambda kind: kind == Mapping[str, Any], _table)
    return converter


def _table(value: Plain, _kind: object) -> Mapping[str, Plain]:
    if not isinstance(value, Mapping):
        raise InputError(f"must be a table, got {shown(value)}")
    return value


def _in_seconds(key: str, value: Plain) -> Plain:
    times = ("settle", "every", "deadline", "report_every", "maximum_delay", "stale_after")
    return parse_quantity(value, "s", place=key) if key in times and isinstance(value, str) else value
