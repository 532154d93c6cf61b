"""Custom models of resources: their common part, their names, and their options.

The ``model`` of a spec is a class, a registered name, an entry point of the group ``simmodel.resources``, or
``module:Class``. :data:`BASES` has the base class of each kind of resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

from simmodel.foundation.entries import Entries, load
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.units import parse_quantity
from simmodel.platform.models import MODELS

__all__ = ["BASES", "Model", "Option", "check_model", "kind_of_model", "model_named", "read_options", "register_model"]

Base = TypeVar("Base")

BASES = Entries[type](
    {
        "processor": "simmodel.resources.processors.processor:Processor",
        "memory pool": "simmodel.resources.data.memory:MemoryPool",
        "placement": "simmodel.resources.pools.placements:NodeChoice",
        "storage": "simmodel.resources.data.storage:Storage",
        "link": "simmodel.resources.network.links:Link",
        "sharing rule": "simmodel.resources.network.sharing_rule:SharingRule",
    }
)
"""The kinds of resources that may have models, and the class from which the models of each derive."""


class Option(NamedTuple):
    """An option of a model.

    ``default``: ``None`` if it must be given; ``unit``: of quantities, which may be texts such as ``"2GB/s"``; numbers
    are at least ``least`` or above ``above``, and at most ``most``; ``whole``: whether it is a whole number.
    """

    default: Any = None
    unit: str = ""
    least: float = 0.0
    above: float = -inf
    most: float = inf
    whole: bool = False


class Model:
    """The part that all custom models of resources share.

    Attributes
    ----------
    takes
        the options of the class; ``None``: any, unchecked
    options
        the values of the options: those of the spec, and defaults
    snapshots
        whether a system with it can be copied; if not, its snapshot is refused
    """

    __slots__ = ()
    takes: ClassVar[Mapping[str, Option] | None] = None
    snapshots: ClassVar[bool] = True

    @classmethod
    def refuses(cls, spec: Any) -> str | None:
        """Return why it does not support a spec, or ``None``; called when the platform is built."""
        return None

    def own_state(self) -> Any:
        """Return the memory of a model beside the state of its base class, for snapshots.

        Plain values (``None``, numbers, texts, lists, mappings with texts as keys), which may hold tasks and data.
        """
        return None

    def restore_own(self, values: Any) -> None:
        """Take back the values of :meth:`own_state`; not called for ``None``."""


def read_options(model: type[Any], given: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return the values of all options of a model: those given, and the defaults of the others.

    Raises
    ------
    InputError
        an option is missing, unknown, or not a value that it may have

    >>> class Streams(Model):
    ...     takes = {"streams": Option(4, least=1, whole=True), "bandwidth": Option(unit="B/s", above=0)}
    >>> dict(read_options(Streams, {"bandwidth": "2GB/s"}, "options of gpu"))
    {'streams': 4, 'bandwidth': 2000000000.0}
    """
    takes: Mapping[str, Option] | None = model.takes
    if takes is None:
        return MappingProxyType(dict(given)) if given else _NO_OPTIONS
    for name in given:
        if name not in takes:
            raise InputError(unknown("option", name, takes).message, place=place)
    missing = [name for name, option in takes.items() if option.default is None and name not in given]
    if missing:
        unit = takes[missing[0]].unit
        raise InputError(f"missing {missing[0]}{f' ({_UNITS.get(unit, unit)})' if unit else ''}", place=place)
    return MappingProxyType(
        {name: _value(option, given.get(name), f"{place}: {name}") for name, option in takes.items()}
    )


_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_UNITS = {"B/s": "bytes/s", "B": "bytes"}


def _value(option: Option, given: Any, place: str) -> Any:
    """Return the value of an option, checked."""
    if given is None:
        return option.default
    if not isinstance(option.default, int | float | None):
        return given
    value = parse_quantity(given, option.unit, place=place) if option.unit else given
    bound = f"> {option.above:g}" if option.above > -inf else f">= {option.least:g}"
    bound += f" and <= {option.most:g}" if option.most < inf else ""
    kinds = int if option.whole else (int, float)
    fits = isinstance(value, kinds) and not isinstance(value, bool)
    if not (fits and option.above < value <= option.most and (option.above > -inf or value >= option.least)):
        raise InputError(f"must be {'a whole number ' if option.whole else ''}{bound}, got {given!r}", place=place)
    return value


def model_named(given: str | type, base: type[Base], place: str) -> type[Base]:
    """Return the class of a model: of a registered name, an entry point of ``simmodel.resources``, or ``module:Class``.

    Parameters
    ----------
    given
        the name, or the class itself
    base
        the class from which it must derive
    place
        where it is named, for errors

    Raises
    ------
    InputError
        an unknown name, or something else than a subclass of ``base``

    >>> from simmodel.resources import Storage
    >>> model_named("disk", Storage, "model of storage scratch").__name__
    'Storage'
    """
    found: object
    if not isinstance(given, str):
        found = given
    elif given not in MODELS and not given.partition(":")[2]:
        raise InputError(unknown("model", given, _of_base(base)).message, place=place)
    else:
        try:
            found = MODELS[given] if given in MODELS else load(given)
        except (ImportError, AttributeError) as error:
            raise InputError(f"must be a class as module:Class, got {given!r}: {error}", place=place) from None
    if not (isinstance(found, type) and issubclass(found, base)):
        raise InputError(f"must be a subclass of {base.__name__}, got {found!r}", place=place)
    return found


def _of_base(base: type) -> list[str]:
    """Return the names of the models of one base class; those that cannot be imported are left out."""
    found = []
    for name in MODELS:
        try:
            fits = issubclass(MODELS[name], base)
        except (ImportError, AttributeError):
            continue
        if fits:
            found.append(name)
    return found


def check_model(model: type[Any], spec: Any, place: str) -> None:
    """Check that a model supports a spec; its constructor checks the options.

    Raises
    ------
    InputError
        the model refuses the spec
    """
    reason = model.refuses(spec)
    if reason is not None:
        raise InputError(f"{model.__name__} {reason}", place=place)


def register_model(name: str, model: type) -> None:
    """Make a model of any kind of resource known by a name, which specs and platform files accept from then on.

    Parameters
    ----------
    name
        its name; replaces another model of that name
    model
        a class derived from one of :data:`BASES`

    Raises
    ------
    InputError
        it does not derive from one of these classes

    >>> from simmodel.platform import ProcessorSpec
    >>> from simmodel.resources import ManyCores
    >>> class Hyper(ManyCores):
    ...     "A processor with hyper-threads."
    >>> register_model("hyper", Hyper)
    >>> ProcessorSpec(name="core", type="CPU", architecture="x86", pool="ram", cores=2, model=Hyper).model
    'hyper'
    >>> del MODELS["hyper"]
    """
    if kind_of_model(model) is None:
        bases = ", ".join(BASES[kind].__name__ for kind in BASES)
        raise InputError(f"must be a subclass of one of {bases}, got {model!r}", place=f"model {name!r}")
    MODELS[name] = model


def kind_of_model(model: object) -> str | None:
    """Return the kind of resource of which a class is a model, or ``None``.

    >>> from simmodel.resources import PIMRank
    >>> kind_of_model(PIMRank), kind_of_model(int)
    ('processor', None)
    """
    if not isinstance(model, type):
        return None
    return next((kind for kind in BASES if issubclass(model, BASES[kind])), None)
