"""Policies and resource models by name: the package's own, and those that other packages offer as entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, TypeAlias

from simmodel.errors import InputError, unknown

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Decision, Policy, View

__all__ = [
    "PolicyLike",
    "families",
    "policies",
    "policy",
    "register_family",
    "register_policy",
    "split_names",
    "unknown",
]

PolicyLike: TypeAlias = "str | Policy | type[Policy] | Callable[[View], Iterable[Decision] | None]"
"""What users give for a policy: a name, a policy, its class, or a function of a view."""

DECIDES = ("jobs", "tasks")
_POLICIES: dict[str, tuple[Callable[[], Any], str, str]] = {}
_FAMILIES: dict[str, tuple[Callable[[str], Any], str]] = {}


def register_policy(name: str, factory: Callable[[], Any], description: str, decides: str = "jobs") -> None:
    """Make a policy known by a name; ``factory()`` gives a new one for each run.

    Parameters
    ----------
    decides
        about ``"jobs"`` of a cluster, which start where they fit, or about ``"tasks"`` of a machine, which are queued
    """
    if decides not in DECIDES:
        raise InputError(f"decides {' or '.join(map(repr, DECIDES))} expected, found {decides!r}")
    _POLICIES[name] = (factory, description, decides)


def register_family(name: str, make: Callable[[str], Any], description: str) -> None:
    """Make policies known by a name with something in brackets behind it; ``make(text)`` gives a new one of that."""
    _FAMILIES[name] = (make, description)


def families() -> dict[str, str]:
    """Return the names that take something in brackets, with a line about what."""
    _known()
    return {name: description for name, (_, description) in _FAMILIES.items()}


def split_names(text: str) -> list[str]:
    """Return the names in a text with commas between them; a comma inside brackets belongs to its name.

    >>> split_names("easy, portfolio(sjf+easy, wfp+easy)")
    ['easy', 'portfolio(sjf+easy, wfp+easy)']
    """
    names, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth <= 0:
            names.append("")
        else:
            names[-1] += sign
    return [name.strip() for name in names if name.strip()]


@cache
def _offered() -> tuple[EntryPoint, ...]:
    """Return what other packages offer: looked up once in a process, for it takes milliseconds."""
    return tuple(entry_points(group="simmodel.policies"))


def _known() -> dict[str, tuple[Callable[[], Any], str, str]]:
    import simmodel.policies  # registers the package's own

    assert simmodel.policies
    known = dict(_POLICIES)
    for entry in _offered():
        found = (lambda entry=entry: entry.load()(), f"from {entry.value}", "")
        known.setdefault(entry.name, found)
    return known


def policies(decides: str | None = None) -> dict[str, str]:
    """Return the names of all policies with a line about each, or of those for ``"jobs"`` or for ``"tasks"``.

    >>> "easy" in policies("jobs"), "heft" in policies("jobs"), "heft" in policies()
    (True, False, True)
    """
    known = _known().items()
    return {name: line for name, (_, line, kind) in known if decides is None or kind in ("", decides)}


def policy(name: Any) -> Any:
    """Return a new policy of this name; one given as an object or a function comes back as it is.

    Besides the names that ``policies()`` lists there is any ``ORDER+BACKFILL``, such as ``sjf+easy``; any name of
    ``families()`` with something in brackets, such as ``portfolio(easy, sjf+easy)``; and ``module:name`` of a policy of
    one's own.

    Raises
    ------
    InputError
        where the name is not known

    >>> policy("sjf+easy").name
    'sjf+easy'
    """
    if not isinstance(name, str):
        return name() if isinstance(name, type) else name
    known = _known()
    if name in known:
        return known[name][0]()
    family, bracket, given = name.strip().partition("(")
    if bracket and given.endswith(")"):
        if family.strip() not in _FAMILIES:
            raise unknown("family of policies", family.strip(), _FAMILIES)
        return _FAMILIES[family.strip()][0](given[:-1])
    if ":" in name:
        return _load(name)
    if "+" in name:
        from simmodel.policies.backfilling import combined

        return combined(name)
    raise unknown("policy", name, known)


def _load(name: str) -> Any:
    from importlib import import_module

    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"policy {name!r}: {error}") from None
    except Exception as error:  # whatever the module does when it is read
        raise InputError(f"policy {name!r}: {module!r} cannot be imported: {type(error).__name__}: {error}") from error
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise InputError(f"policy {name!r}: a class that needs no arguments expected: {error}") from None
    if not callable(getattr(found, "decide", found)):
        raise InputError(
            f"policy {name!r}: a policy with decide(view), or a function of a view, expected, found {found!r}"
        )
    return found
