"""The options of each kind of system, as typed values used by signatures, documents and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.models import PREDICTORS
from simmodel.platform.signals import Signal, signals_of

__all__ = ["ESTIMATES", "BrokerOptions", "ClusterOptions", "GridOptions", "MachineOptions", "NoOptions", "Options"]

T = TypeVar("T")


def _option(default: T, text: str) -> T:
    """Return the field of an option; ``text`` is its help on the command line."""
    return attrs.field(default=default, metadata={"help": text})


def _choice(default: T, text: str) -> T:
    return attrs.field(default=default, metadata={"help": text}, validator=_one_of)


def _one_of(options: Options, field: attrs.Attribute[T], value: T) -> None:
    allowed = type(options).choices(field.name)
    if value not in allowed:
        raise InputError(f"must be {' or '.join(map(repr, allowed))}, got {value!r}", place=field.name)


ESTIMATES = ("requested", "exact", "cqsim")
"""The times that policies plan with, where they are not predicted."""


def _by_name(value: Any) -> Any:
    """Return the name of a predictor that has one, else the value."""
    return getattr(value, "known_as", None) or value


def _signals(given: Any) -> Any:
    return signals_of(given) if given else {}


def _estimates(_options: Options, field: attrs.Attribute[Any], value: Any) -> None:
    """Check that a value is one of ``ESTIMATES``, the name of a predictor, or an object that predicts and learns."""
    if isinstance(value, str):
        if value not in ESTIMATES and (name := value.partition("(")[0].strip()) not in PREDICTORS:
            raise InputError(unknown("estimate", name, [*ESTIMATES, *PREDICTORS]).message, place=field.name)
    elif value is None:
        raise InputError("was passed as an object, which documents do not hold: pass it again", place=field.name)
    elif not (callable(getattr(value, "predict", None)) and callable(getattr(value, "learn", None))):
        accepted = f"must be {', '.join(map(repr, ESTIMATES))}, the name of a predictor or a Predictor"
        raise InputError(f"{accepted}, got {value!r}", place=field.name)


_HINTS: dict[type[Options], dict[str, Any]] = {}  # the types of the options of each class, which take long to find


@attrs.frozen(kw_only=True, repr=False)
class Options(Fields):
    """The base class of the options of a kind of system."""

    @classmethod
    def choices(cls, name: str) -> tuple[Any, ...]:
        """Return the accepted values of an option; empty if it is not a choice.

        >>> ClusterOptions.choices("overrun"), MachineOptions.choices("decide"), MachineOptions.choices("overlap")
        (('stop', 'continue'), ('ready', 'submit', None), ())
        """
        if cls not in _HINTS:
            _HINTS[cls] = get_type_hints(cls)
        hint = _HINTS[cls][name]
        if get_origin(hint) is Literal:
            return get_args(hint)
        arms = get_args(hint)
        if not any(get_origin(arm) is Literal for arm in arms):
            return ()
        return tuple(value for arm in arms for value in (get_args(arm) or (None,)))

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the options, in order.

        >>> MachineOptions.names()
        ['decide', 'overlap', 'transfers', 'core_held', 'contention']
        """
        return [field.name for field in attrs.fields(cls)]

    @classmethod
    def takes(cls, name: str) -> bool:
        """Whether an option of this name exists.

        >>> ClusterOptions.takes("overlap"), BrokerOptions.takes("overlap")  # a broker passes it to its places
        (False, True)
        """
        return name in cls.names()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """Return the options with these values.

        Raises
        ------
        InputError
            a name is unknown or a value is invalid

        >>> ClusterOptions.of({"overrun": "continue"}).overrun
        'continue'
        """
        for name in values:
            if name not in cls.names():
                raise unknown("option", name, cls.names())
        return cls(**values)

    def values(self) -> dict[str, Any]:
        """Return names and values.

        >>> NoOptions().values()
        {}
        """
        return attrs.asdict(self, recurse=False)

    def described(self) -> dict[str, Any]:
        """Return names and values for a document, in which objects are ``None``: pass them again.

        >>> NoOptions().described()
        {}
        """
        described: dict[str, Any] = _plain(self.values())
        return described


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Signal):
        return value.source
    return value if value is None or isinstance(value, str | int | float) else None


@attrs.frozen(kw_only=True, repr=False)
class NoOptions(Options):
    """No options."""


@attrs.frozen(kw_only=True, repr=False)
class ClusterOptions(Options):
    """The options of a :class:`~simmodel.systems.cluster.system.Cluster`."""

    decide_on: Literal["instant", "event"] = _choice("instant", "decide once per instant (default) or after each event")
    event_order: Literal["submits-first", "ends-first"] = _choice(
        "submits-first", "order of the events of an instant, with --decide-on event"
    )
    estimates: Any = attrs.field(
        default="requested",
        converter=_by_name,
        validator=_estimates,
        metadata={
            "text": "NAME",
            "help": "times that policies plan with: requested (default), exact run times, CQSim's mixture (cqsim), or "
            "predicted ones: predicted, or any of 'simmodel list predictors'",
        },
    )
    overrun: Literal["stop", "continue"] = _choice("stop", "stop (default) or continue jobs at their requested time")
    sharing: Literal["fair-bottleneck", "max-min"] = _choice(
        "fair-bottleneck", "how jobs with traffic share links: as SimGrid's parallel tasks (default), or max-min"
    )
    signals: Mapping[str, Signal] = attrs.field(
        factory=dict,
        converter=_signals,
        metadata={
            "flag": "--signal",
            "text": "NAME=CSV",
            "help": "what policies and metrics know over time, such as carbon=grid.csv: a CSV file of times and values",
        },
    )


@attrs.frozen(kw_only=True, repr=False)
class MachineOptions(Options):
    """The options of a :class:`~simmodel.systems.machine.system.Machine`."""

    decide: Literal["ready", "submit"] | None = _choice(
        None, "decide when tasks are ready, or when they are submitted (default: as the policy requires)"
    )
    overlap: bool = _option(False, "fetch data while the processor is busy with earlier tasks")
    transfers: Literal["sequential", "parallel"] = _choice(
        "sequential", "transfer the inputs of a task one after another (default) or in parallel"
    )
    core_held: Literal["run", "transfer"] = _choice(
        "run", "a CPU core is held by its own task while that runs (default), or from the transfer of its data on"
    )
    contention: bool = _option(True, "ignore contention for links, as HetSim does")  # --no-contention


@attrs.frozen(kw_only=True, repr=False)
class BrokerOptions(Options):
    """The options of a broker; ``below`` holds those of its places, each passed to the kinds that have it."""

    by: Literal["requested", "actual"] = _choice(
        "requested", "times that estimates use: requested (default), or actual run times as in CQSim+"
    )
    below: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def takes(cls, name: str) -> bool:
        """Always true: a place of the broker may have an option of any name."""
        return True

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> BrokerOptions:
        """Return the options with these values; those that the broker lacks are for its places."""
        own = {name: value for name, value in values.items() if name in ("by", "below")}
        below = {**own.pop("below", {}), **{name: value for name, value in values.items() if name not in cls.names()}}
        return cls(**own, below=below)


@attrs.frozen(kw_only=True, repr=False)
class GridOptions(Options):
    """The options of a :class:`~simmodel.systems.grid.system.Grid`."""

    by: Literal["requested", "actual"] = _choice("requested", "times that estimates use: requested (default) or actual")
    data: Any = attrs.field(
        default="nearest",
        metadata={"help": "policy of the files: nearest (default), least-used-link, prefetch, replicate, ..."},
    )
    overrun: Literal["stop", "continue"] = _choice("stop", "stop (default) or continue jobs at their requested time")
