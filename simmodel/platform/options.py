"""The options of each kind of system: one typed value, from which signatures, documents and the command line follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import attrs

from simmodel.errors import InputError, unknown

__all__ = ["BrokerOptions", "ClusterOptions", "MachineOptions", "NoOptions", "Options"]

T = TypeVar("T")


def _option(default: T, text: str) -> T:
    """Return the field of an option; ``text`` is its help on the command line."""
    return attrs.field(default=default, metadata={"help": text})


def _choice(default: T, text: str) -> T:
    return attrs.field(default=default, metadata={"help": text}, validator=_one_of)


def _one_of(options: Options, field: attrs.Attribute[T], value: T) -> None:
    allowed = type(options).choices(field.name)
    if value not in allowed:
        raise InputError(f"{field.name} {' or '.join(map(repr, allowed))} expected, found {value!r}")


@attrs.frozen(kw_only=True)
class Options:
    """What the options of all kinds of system share."""

    @classmethod
    def choices(cls, name: str) -> tuple[Any, ...]:
        """Return the values that an option may have; none where it is not a choice.

        >>> ClusterOptions.choices("overrun"), MachineOptions.choices("decide"), MachineOptions.choices("overlap")
        (('stop', 'continue'), ('ready', 'submit', None), ())
        """
        hint = get_type_hints(cls)[name]
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
        ['decide', 'overlap', 'transfers', 'contention']
        """
        return [field.name for field in attrs.fields(cls)]

    @classmethod
    def takes(cls, name: str) -> bool:
        """Whether there is an option of this name.

        >>> ClusterOptions.takes("overlap"), BrokerOptions.takes("overlap")  # a broker hands it to its places
        (False, True)
        """
        return name in cls.names()

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

    decide: Literal["ready", "submit"] | None = _choice(
        None, "decide when tasks are ready, or when they are submitted (default: as the policy wants)"
    )
    overlap: bool = _option(False, "fetch data while the processor is busy with earlier tasks")
    transfers: Literal["sequential", "parallel"] = _choice(
        "sequential", "move what a task reads one after another (default) or at once"
    )
    contention: bool = _option(True, "let each transfer have its links alone, as HetSim does")  # --no-contention


@attrs.frozen(kw_only=True)
class BrokerOptions(Options):
    """The options of a broker; ``below`` holds those of its places, each handed to the kinds that know it."""

    by: Literal["requested", "actual"] = _choice(
        "requested", "what estimates go by: requested times (default), or actual run times as CQSim+ does"
    )
    below: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def takes(cls, name: str) -> bool:
        """Whether the broker, or one of its places, may have an option of this name: any."""
        return True

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> BrokerOptions:
        """Return the options that values give; what a broker does not know is for its places."""
        own = {name: value for name, value in values.items() if name in ("by", "below")}
        below = {**own.pop("below", {}), **{name: value for name, value in values.items() if name not in cls.names()}}
        return cls(**own, below=below)
