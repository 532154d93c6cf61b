"""The options of each kind of system: one typed value, from which signatures, documents and the command line follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_type_hints

import attrs

from simmodel.errors import InputError, unknown

__all__ = ["BrokerOptions", "ClusterOptions", "MachineOptions", "NoOptions", "Options"]


def _choice(default: Any, text: str) -> Any:
    return attrs.field(default=default, metadata={"help": text}, validator=_one_of)


def _one_of(options: Options, field: attrs.Attribute[Any], value: Any) -> None:
    allowed = type(options).choices(field.name)
    if value not in allowed:
        raise InputError(f"{field.name} {' or '.join(map(repr, allowed))} expected, found {value!r}")


@attrs.frozen(kw_only=True)
class Options:
    """What the options of all kinds of system share."""

    @classmethod
    def choices(cls, name: str) -> tuple[Any, ...]:
        """Return the values that an option may have.

        >>> ClusterOptions.choices("overrun")
        ('stop', 'continue')
        """
        return get_args(get_type_hints(cls)[name])

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the options, in order.

        >>> MachineOptions.names()
        ['decide', 'overlap', 'transfers', 'contention']
        """
        return [field.name for field in attrs.fields(cls)]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """Return the options that values give.

        Raises
        ------
        InputError
            where a name or a value is not possible

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


@attrs.frozen(kw_only=True)
class NoOptions(Options):
    """No options."""


@attrs.frozen(kw_only=True)
class ClusterOptions(Options):
    """The options of a cluster, as :class:`~simmodel.systems.cluster.system.Cluster` takes them."""

    decide_on: Literal["instant", "event"] = _choice("instant", "decide once an instant (default), or after each event")
    event_order: Literal["submits-first", "ends-first"] = _choice(
        "submits-first", "inside an instant, with --decide-on event"
    )
    estimates: Literal["requested", "exact", "cqsim"] = _choice(
        "requested", "what policies plan with: requested times (default), run times, or CQSim's mixture"
    )
    overrun: Literal["stop", "continue"] = _choice("stop", "what a job does at its requested time (default: stop)")


@attrs.frozen(kw_only=True)
class MachineOptions(Options):
    """The options of a machine, as :class:`~simmodel.systems.machine.system.Machine` takes them."""

    decide: Literal["ready", "submit"] | None = attrs.field(default=None)
    overlap: bool = False
    transfers: Literal["sequential", "parallel"] = _choice("sequential", "how the data that a task lacks move")
    contention: bool = True

    @decide.validator
    def _check(self, _field: attrs.Attribute[Any], value: Any) -> None:
        if value not in ("ready", "submit", None):
            raise InputError(f"decide 'ready' or 'submit' or None expected, found {value!r}")


@attrs.frozen(kw_only=True)
class BrokerOptions(Options):
    """The options of a broker; ``below`` holds those of its places, each handed to the kinds that know it."""

    by: Literal["requested", "actual"] = _choice("requested", "the run times that estimates go by")
    ties: Any = None
    below: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> BrokerOptions:
        """Return the options that values give; what a broker does not know is for its places."""
        own = {name: value for name, value in values.items() if name in ("by", "ties", "below")}
        below = {**own.pop("below", {}), **{name: value for name, value in values.items() if name not in cls.names()}}
        return cls(**own, below=below)
