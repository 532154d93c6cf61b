"""Policies by name: the package's own, those that other packages offer as entry points, and those registered.

One name means the same policy for every system. A name may have parameters: ``share(0.6)``, ``sgs-t(ties=home)``,
``portfolio(sjf+easy, fcfs+easy, interval=60)``; ``ORDER+POLICY``, such as ``sjf+easy``, gives a policy its order.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from simmodel.errors import InputError, unknown
from simmodel.scheduling.built_in import BUILT_IN
from simmodel.scheduling.policy_base import Decides, DecidingObject, FunctionPolicy, Policy, value_of

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Decision, View

__all__ = ["PolicyLike", "label", "policy", "policy_names", "register_policy", "split_names", "unknown", "unused"]

PolicyLike: TypeAlias = "str | Policy | type[Policy] | Callable[[View], Iterable[Decision] | None] | HasDecide"
"""What users give for a policy: a name, a policy, its class, a function of a view, or an object with ``decide``."""

if TYPE_CHECKING:
    from typing import Protocol

    class HasDecide(Protocol):
        """An object that decides."""

        def decide(self, view: View, /) -> Iterable[Decision] | None:
            """Return or yield decisions."""
            ...


_EXPECTED = "a policy with decide(view), a function of a view, or a name expected"


class _Entry(NamedTuple):
    source: str | Callable[..., Any]  # "module:name" or "module:name(parameters)", or what makes the policy
    line: str
    decides: Decides | None = None  # None: what the class says


_ENTRIES: dict[str, _Entry] = {name: _Entry(source, line) for name, (source, line) in BUILT_IN.items()}


def register_policy(
    name: str, factory: Callable[..., Any] | str, description: str, decides: Decides = "anything"
) -> None:
    """Make a policy known by a name.

    Parameters
    ----------
    name
        the name; parameters in brackets behind it are handed to ``factory``
    factory
        returns a new policy, such as its class; or ``"module:Class"``; or a policy that is a function of ``view`` alone
    description
        one line
    decides
        what it decides (see :class:`~simmodel.scheduling.policy_base.Policy`)

    Raises
    ------
    InputError
        the name is no word, or ``decides`` is none of the possible values
    """
    if decides not in (kinds := Decides.__args__):  # type: ignore[attr-defined]
        raise InputError(f"decides {' or '.join(map(repr, kinds))} expected, found {decides!r}")
    if not re.fullmatch(r"[\w.-]+", name):
        raise InputError(f"a name of letters, digits, - and . expected, found {name!r}")
    _ENTRIES[name] = _Entry(factory, description, decides)


@cache
def _offered() -> tuple[EntryPoint, ...]:
    """Return what other packages offer: looked up once in a process, for it takes milliseconds."""
    return tuple(entry_points(group="simmodel.policies"))


def _known() -> dict[str, _Entry]:
    known = dict(_ENTRIES)
    for entry in _offered():
        known.setdefault(entry.name, _Entry(_of_entry_point(entry), f"from {entry.value}", "anything"))
    return known


def _of_entry_point(entry: EntryPoint) -> Callable[..., Any]:
    return lambda *values, **options: entry.load()(*values, **options)


def policy_names(decides: Decides | None = None) -> dict[str, str]:
    """Return the names of all policies with a line about each, or of those that can decide about ``"jobs"`` and so on.

    Those that choose among any places with queues are among those for ``"tasks"`` and for ``"systems"``.

    >>> "easy" in policy_names("jobs"), "heft" in policy_names("jobs"), "sgs-t" in policy_names("systems")
    (True, False, True)
    """
    wanted = {decides, "anything"} | ({"places"} if decides in ("tasks", "systems") else set())
    known = _known().items()
    return {name: each.line for name, each in known if decides is None or (each.decides or _kind_of(each)) in wanted}


def _kind_of(entry: _Entry) -> Decides:
    assert isinstance(entry.source, str)
    found: Policy | type[Policy] = _load(entry.source.partition("(")[0])
    return found.decides


# ---------------------------------------------------------------------- what users give


def policy(given: PolicyLike) -> Policy:
    """Return the policy that is given: a name, a policy, a class, a function of a view, or an object with ``decide``.

    Besides the names that ``policy_names()`` lists there are a name with parameters, ``ORDER+NAME``, and
    ``module:name`` of a custom policy.

    Raises
    ------
    InputError
        the name is unknown, its parameters are wrong, or what is given is no policy

    >>> policy("sjf+easy").name, policy("share(0.6)").p
    ('sjf+easy', 0.6)
    """
    if isinstance(given, Policy):
        return given
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, type):
        return policy(_made(given.__name__, given, [], {}))
    if callable(getattr(given, "decide", None)):
        return DecidingObject(given)
    if callable(given):
        return FunctionPolicy(given)
    raise InputError(f"{_EXPECTED}, found {given!r}")


def unused(given: PolicyLike) -> str | Policy:
    """Return what is given with nothing remembered, so that a run does not see what another one left.

    A name stays a name, of which each system makes a policy of its own. Raises as :func:`policy`.
    """
    return given if isinstance(given, str) else policy(given).fresh()


def label(given: PolicyLike | None) -> str:
    """Return what tables call a policy that users give: a name as it is written.

    >>> label("easy"), label(policy("sjf+easy")), label(None)
    ('easy', 'sjf+easy', 'as it is')
    """
    if given is None:
        return "as it is"
    return given if isinstance(given, str) else policy(given).name


# ---------------------------------------------------------------------- names and parameters


def split_names(text: str) -> list[str]:
    """Return the names in a text with commas between them; a comma inside brackets belongs to its name.

    >>> split_names("easy, portfolio(sjf+easy, wfp+easy)")
    ['easy', 'portfolio(sjf+easy, wfp+easy)']
    """
    return [name for name in _split(text, ",") if name]


def _split(text: str, sign: str) -> list[str]:
    """Split a text at a sign outside brackets."""
    parts, depth = [""], 0
    for each in text:
        depth += (each == "(") - (each == ")")
        if each == sign and depth <= 0:
            parts.append("")
        else:
            parts[-1] += each
    return [part.strip() for part in parts]


def _named(text: str) -> Policy:
    order, plus, rest = text.partition("+")
    if plus and "(" not in order:
        if rest.strip() == "none":  # ORDER+none: an order is a policy that does not backfill
            return _named(order)
        return _make(rest, text, order=order.strip())
    return _make(text, text)


def _make(text: str, whole: str, **more: str) -> Policy:
    """Return the policy of a name with parameters."""
    name, bracket, given = text.strip().partition("(")
    name = name.strip()
    if bracket and not given.endswith(")"):
        raise InputError(f"policy {whole!r}: ')' expected at its end")
    values, options = _parameters(given[:-1]) if bracket else ([], {})
    known = _ENTRIES if name in _ENTRIES else _known()  # what other packages offer is looked up if need be
    first, colon, second = name.partition(":")
    if colon:
        if first in known:
            raise InputError(f"policy {whole!r}: parameters stand in brackets, {first}({second})")
        source = _load(name)
        if not callable(getattr(source, "decide", source)):
            raise InputError(f"policy {name!r}: {_EXPECTED}, found {source!r}")
        makes = isinstance(source, type)
    elif name in known:
        source = known[name].source
        if isinstance(source, str):
            path, _, preset = source.partition("(")
            source, options = _load(path), {**_parameters(preset[:-1])[1], **options}
        makes = not isinstance(source, Policy) and not _takes_view(source)
    else:
        raise unknown("policy", name, known)
    options |= more
    if makes:
        return policy(_made(name, source, values, options))
    if values or options:
        raise InputError(f"policy {name!r} takes no parameters, found {', '.join([*values, *options])}")
    return policy(source)


def _takes_view(source: Callable[..., Any]) -> bool:
    """Whether a function is a policy itself: its one parameter is called ``view``."""
    return not isinstance(source, type) and callable(source) and list(inspect.signature(source).parameters) == ["view"]


def _parameters(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the values and the named values of ``a, b, key=c``."""
    values: list[str] = []
    options: dict[str, str] = {}
    for part in split_names(text):
        key, equals, value = part.partition("=")
        if equals and key.strip().isidentifier():
            options[key.strip()] = value.strip()
        else:
            values.append(part)
    return values, options


def _made(name: str, source: Callable[..., Any], values: Sequence[str], options: dict[str, str]) -> Any:
    """Return what a class or a factory makes of parameters."""
    if isinstance(source, type) and issubclass(source, Policy) and source.of.__func__ is not Policy.of.__func__:  # type: ignore[attr-defined]
        source = source.of
    given, named = [value_of(each) for each in values], {key: value_of(each) for key, each in options.items()}
    signature = inspect.signature(source)
    known = [key for key, each in signature.parameters.items() if each.kind is not each.VAR_POSITIONAL]
    for key in named:
        if key not in known and not any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
            raise InputError(unknown("parameter", key, known).message, place=f"policy {name!r}")
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        raise InputError(f"policy {name!r}: {error}") from None
    return source(*given, **named)


def _load(name: str) -> Any:
    """Return what ``module:name`` names."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"policy {name!r}: {error}") from None
    except Exception as error:  # whatever the module does when it is read
        raise InputError(f"policy {name!r}: {module!r} cannot be imported: {type(error).__name__}: {error}") from error
