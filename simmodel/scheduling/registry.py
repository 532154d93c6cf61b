"""Policies by name: built-in policies, entry points of other packages, and registered policies.

A name means the same policy for every system. It may have parameters: ``share(0.6)``, ``sgs-t(ties=home)``,
``portfolio(sjf+easy, fcfs+easy, interval=60)``; ``ORDER+POLICY``, such as ``sjf+easy``, sets the order of a policy.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from simmodel.foundation.entries import call_with, load, read_parameters, split_call, split_names
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.packages import offered, unseen
from simmodel.scheduling.protocol import Decides, DecidingObject, FunctionPolicy, Policy

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Decision, View

__all__ = [
    "BUILT_IN",
    "PolicyLike",
    "imports_code",
    "label",
    "labelled",
    "policy",
    "policy_names",
    "register_policy",
    "split_names",
    "unused",
]


_ORDERS = "simmodel.policies.ordering:"
_BACKFILLING = "simmodel.policies.backfilling:"
_PLANNING = "simmodel.policies.planning:"
_MAPPING = "simmodel.policies.mapping:"
_ESTIMATES = "simmodel.policies.estimates:"
_BATCH = "simmodel.policies.batch_mapping:"
_DATA = "simmodel.policies.data:"
_PLANNERS = "simmodel.policies.planners.planner:"

BUILT_IN: dict[str, tuple[str, str]] = {
    # jobs of a cluster
    "fcfs": (_ORDERS + "FCFS", "first come, first served; no backfilling"),
    "sjf": (_ORDERS + "SJF", "shortest requested time first; no backfilling"),
    "ljf": (_ORDERS + "LJF", "longest requested time first; no backfilling"),
    "smallest": (_ORDERS + "SMALLEST", "fewest processors first; no backfilling"),
    "largest": (_ORDERS + "LARGEST", "most processors first; no backfilling"),
    "wfp": (_ORDERS + "WFP", "(wait / requested)^3 x processors; no backfilling"),
    "unicef": (
        _ORDERS + "UNICEF",
        "wait / (log2(processors) x requested): small, short and long-waiting first; no backfilling",
    ),
    "f1": (_ORDERS + "F1", "log10(requested) x processors + 870 log10(submit); no backfilling"),
    "f2": (_ORDERS + "F2", "sqrt(requested) x processors + 25600 log10(submit); no backfilling"),
    "f3": (_ORDERS + "F3", "requested x processors + 6860000 log10(submit); no backfilling"),
    "f4": (_ORDERS + "F4", "requested x sqrt(processors) + 530000 log10(submit); no backfilling"),
    "multifactor": (
        "simmodel.policies.multifactor:Multifactor",
        "weighted age, size and fair share by user; no backfilling",
    ),
    "easy": (_BACKFILLING + "Easy", "EASY backfilling: a promised start for the head of the queue"),
    "easy-sjbf": (_BACKFILLING + "Easy(candidates=sjf)", "EASY, shortest candidates first"),
    "conservative": (
        _PLANNING + "Conservative",
        "conservative backfilling: all jobs are planned, again at each decision",
    ),
    "conservative-keep": (_PLANNING + "ConservativeKeep", "conservative backfilling that keeps its promises"),
    "best-fit": (
        "simmodel.policies.ordering:BestFit",
        "the fitting job that leaves the fewest processors free, repeatedly",
    ),
    "window": (
        "simmodel.policies.window:Window",
        "the best order of the first five jobs by planned makespan (CQSim)",
    ),
    "preemptive": ("simmodel.policies.preemption:Preemptive", "EASY, with preemption between queues that allow it"),
    "quota": (
        "simmodel.policies.quotas:Quotas",
        "quota(FILE.toml, POLICY): EASY, with the quotas of tenants, borrowing and reclaim by preemption (Kueue)",
    ),
    "keep-preferred": (
        "simmodel.policies.malleable:KeepPreferred",
        "EASY; elastic jobs start as they prefer, and grow into idle processors",
    ),
    "shrink-to-start": (
        "simmodel.policies.malleable:ShrinkToStart",
        "EASY; running elastic jobs shrink so that others start, and grow into idle processors",
    ),
    "equal-shares": (
        "simmodel.policies.malleable:EqualShares",
        "EASY; elastic jobs start if they fit at their minimum, and have equal shares",
    ),
    "portfolio": (
        "simmodel.policies.portfolio:Portfolio",
        "of wfp, fcfs and sjf, each with EASY, the one with the best simulated future",
    ),
    "wait-for": (
        "simmodel.policies.signals:WaitFor",
        "jobs that have slack wait until a signal, such as carbon or the price of energy, is expected to be lowest",
    ),
    "sleep-after": (
        "simmodel.policies.sleep:SleepAfter",
        "sleep-after(SECONDS, POLICY, spare=N): EASY; nodes sleep once they were idle for so long, except N of them",
    ),
    "cap": (
        "simmodel.policies.caps:Cap",
        "cap(2MW, POLICY): no more power than that is drawn; cap(2MW, POLICY, lower): jobs start at lower levels",
    ),
    # tasks of a machine; some also for brokers
    "hrr": (_MAPPING + "RoundRobin(name=hrr)", "the next place that can run it, in turn (HetSim)"),
    "greedy-et": (_ESTIMATES + "FastestExecution", "the place with the shortest run time, ignoring queues (HetSim)"),
    "greedy-ds": (
        _ESTIMATES + "GreedyDS",
        "the place with the shortest setup + transfer + run, ignoring queues (HetSim)",
    ),
    "earliest-start": (_ESTIMATES + "EarliestStart", "the place with the earliest expected start"),
    "earliest-finish": (_ESTIMATES + "EarliestFinish", "the place with the earliest expected end"),
    "min-min": (_BATCH + "MinMin", "repeatedly the work that can end first"),
    "max-min": (_BATCH + "MaxMin", "repeatedly the work with the latest earliest end"),
    "sufferage": (_BATCH + "Sufferage", "repeatedly the work that loses most at its second-best place"),
    "heft": (_PLANNERS + "HEFT", "planned: by upward rank, each task where it ends first"),
    "cpop": (_PLANNERS + "CPOP", "planned: the critical path on one processor, other tasks where they end first"),
    "peft": (_PLANNERS + "PEFT", "planned: by an optimistic cost table"),
    "lookahead": (_PLANNERS + "LookaheadHEFT", "planned: HEFT with a look-ahead to the ends of the children"),
    "heft-setup": (_PLANNERS + "HEFTSetup", "planned: HEFT with setup, reconfiguration and transfers"),
    "peft-setup": (_PLANNERS + "PEFTSetup", "planned: PEFT with setup, reconfiguration and transfers"),
    # jobs of a broker, tasks of a machine
    "round-robin": (_MAPPING + "RoundRobin", "the next place that can run it, in turn"),
    "random": (_MAPPING + "Random", "a random place; random(3, 1): with these weights"),
    "share": (_MAPPING + "Share", "share(P): the first place with probability P, the others equally likely"),
    "sgs-t": (_ESTIMATES + "EarliestFinish(name=sgs-t, simulated=1)", "the lowest turnaround, estimated by simulation"),
    "sgs-w": (_ESTIMATES + "EarliestStart(name=sgs-w, simulated=1)", "the lowest wait, estimated by simulation"),
    # jobs of a broker
    "least-loaded": (
        "simmodel.policies.brokers:LeastLoaded",
        "the least work per processor; least-loaded(LOAD): by work | processors | jobs",
    ),
    "shortest-wait": (
        "simmodel.policies.brokers:ShortestWait",
        "the shortest estimated wait: none with free processors, else the work per processor",
    ),
    "data-locality": (
        "simmodel.policies.brokers:DataLocality",
        "the site with most bytes of the inputs, then the least work per processor",
    ),
    "shares": (
        "simmodel.policies.shares:Shares",
        "shares(3, 1), shares(NAME=3, ...): the site that is furthest behind its share; default: by processors",
    ),
    "panda": (
        "simmodel.policies.brokers:Panda",
        "the highest weight: running jobs and free slots per queued job, and local inputs (PanDA)",
    ),
    # files of a grid
    "nearest": (_DATA + "DataPolicy", "files come from the nearest replica, outputs stay"),
    "least-used-link": (_DATA + "LeastUsedLink", "files come over the route with the fewest transfers"),
    "prefetch": (_DATA + "Prefetch", "inputs are sent when a job is assigned, and to its home while it waits"),
    "replicate": (_DATA + "Replicate", "replicate(THRESHOLD, COPIES): files asked for often get more replicas"),
    # jobs of a broker
    "siloed": ("simmodel.policies.brokers:Siloed", "every job at home"),
    "recorded": ("simmodel.policies.brokers:Siloed(name=recorded)", "each job of a grid at the site of its record"),
}


PolicyLike: TypeAlias = "str | Policy | type[Policy] | Callable[[View], Iterable[Decision] | None] | HasDecide"
"""A policy as users pass it: a name, a policy, its class, a function of a view, or an object with ``decide``."""

if TYPE_CHECKING:
    from typing import Protocol

    class HasDecide(Protocol):
        """An object with a ``decide`` method."""

        def decide(self, view: View, /) -> Iterable[Decision] | None:
            """Return or yield decisions."""
            ...


GROUP = "simmodel.policies"  # of entry points
DEEPEST = 50  # policies inside policies, as in portfolio(portfolio(easy))
_EXPECTED = "must be a policy name, an object with decide(view), or a function of a view"


class _Entry(NamedTuple):
    source: str | Callable[..., Any]  # "module:name" or "module:name(parameters)", or a factory
    line: str
    decides: Decides | None = None  # None: as the class declares


_ENTRIES: dict[str, _Entry] = {name: _Entry(source, line) for name, (source, line) in BUILT_IN.items()}


def register_policy(
    name: str, factory: Callable[..., Any] | str, description: str, decides: Decides = "anything"
) -> None:
    """Register a policy under a name.

    Parameters
    ----------
    name
        the name; parameters in parentheses after it are passed to ``factory``
    factory
        returns a new policy, such as its class; or ``"module:Class"``; or a policy that is a function of ``view`` alone
    description
        one line
    decides
        its kind of decision (see :class:`~simmodel.scheduling.protocol.Policy`)

    Raises
    ------
    InputError
        the name has other characters than letters, digits, ``_``, ``.`` and ``-``, or ``decides`` is unknown
    """
    if decides not in (kinds := Decides.__args__):  # type: ignore[attr-defined]
        raise InputError(f"must be {' or '.join(map(repr, kinds))}, got {decides!r}", place="decides")
    if not re.fullmatch(r"[\w.-]+", name):
        raise InputError(f"must consist of letters, digits, '_', '.' and '-', got {name!r}", place="name")
    _ENTRIES[name] = _Entry(factory, description, decides)


@cache
def _of_others() -> dict[str, _Entry]:
    """Return the policies that other packages add, each imported for its kind of decision and its line.

    One that cannot be imported breaks nothing: it is left out here, and who asks for its name gets the reason.
    """
    found = {}
    for name, source in offered(GROUP).items():
        with suppress(InputError):
            found[name] = _described(source)
    return found


def _described(source: str) -> _Entry:
    found = _load(source.partition("(")[0])
    line = (inspect.getdoc(found) or "").partition("\n")[0].rstrip(".")
    decides: Decides = found.decides if isinstance(found, Policy) or _is_policy_class(found) else "anything"
    return _Entry(source, line or f"from {source}", decides)


def _known() -> dict[str, _Entry]:
    return _ENTRIES | {name: each for name, each in _of_others().items() if name not in _ENTRIES}


def _is_policy_class(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Policy)


def policy_names(decides: Decides | None = None) -> dict[str, str]:
    """Return the names and descriptions of all policies, or of those for one kind of decision such as ``"jobs"``.

    Policies for ``"places"`` count for ``"tasks"`` and for ``"systems"`` too.

    >>> "easy" in policy_names("jobs"), "heft" in policy_names("jobs"), "sgs-t" in policy_names("systems")
    (True, False, True)
    """
    wanted = {decides, "anything"} | ({"places"} if decides in ("tasks", "systems") else set())
    wanted |= {"plans"} if decides == "tasks" else set()
    known = _known().items()
    return {name: each.line for name, each in known if decides is None or (each.decides or _kind_of(each)) in wanted}


def _kind_of(entry: _Entry) -> Decides:
    assert isinstance(entry.source, str)
    found: Policy | type[Policy] = _load(entry.source.partition("(")[0])
    return found.decides


# ---------------------------------------------------------------------- policies as users pass them


def policy(given: PolicyLike, asked: Sequence[Decides] = ()) -> Policy:
    """Return the policy of a name, a policy, a class, a function of a view, or an object with ``decide``.

    A name is one of ``policy_names()``, also with parameters or as ``ORDER+NAME``, or ``module:name`` of a custom
    policy. ``asked`` are the kinds of decision to which the names in errors are limited.

    Raises
    ------
    InputError
        an unknown name, invalid parameters, or an object of another type

    >>> policy("sjf+easy").name, policy("share(0.6)").p
    ('sjf+easy', 0.6)
    """
    if isinstance(given, Policy):
        return given
    if isinstance(given, str):
        return _named(given, asked)
    if isinstance(given, type):
        return policy(_made(given.__name__, given, [], {}))
    if callable(getattr(given, "decide", None)):
        return DecidingObject(given)
    if callable(given):
        return FunctionPolicy(given)
    raise InputError(f"{_EXPECTED}, got {given!r}", place="policy")


def unused(given: PolicyLike) -> str | Policy:
    """Return the policy without state, so that no run sees the state of another one.

    A name is returned unchanged: each system makes its own policy of it. Raises as :func:`policy`.
    """
    return given if isinstance(given, str) else policy(given).fresh()


def label(given: PolicyLike | None) -> str:
    """Return the name of a policy for tables; a name given as text is unchanged.

    >>> label("easy"), label(policy("sjf+easy")), label(None)
    ('easy', 'sjf+easy', 'as it is')
    """
    if given is None:
        return "as it is"
    return given if isinstance(given, str) else policy(given).name


# ---------------------------------------------------------------------- names and parameters


def _named(text: str, asked: Sequence[Decides]) -> Policy:
    if text.count("(") > DEEPEST and _depth(text) > DEEPEST:
        raise InputError(f"must be nested at most {DEEPEST} deep, got {_depth(text):,} levels", place="policy")
    order, plus, rest = _order_first(text)
    if plus:
        if rest.strip() == "none":  # ORDER+none: an order is a policy that does not backfill
            return _named(order, asked)
        return _make(rest, text, asked, order=order.strip())
    return _make(text, text, asked)


def _order_first(text: str) -> tuple[str, str, str]:
    """Split ``ORDER+NAME`` at the first ``+`` outside of parentheses."""
    depth = 0
    for at, each in enumerate(text):
        depth += (each == "(") - (each == ")")
        if each == "+" and depth == 0:
            return text[:at], "+", text[at + 1 :]
    return text, "", ""


_SCALE = re.compile(r"^(min-max|mean|raw)\s*:")  # of an objective, not a module


def imports_code(text: str) -> bool:
    """Whether the name of a policy, or a policy in its parameters, is ``module:name``; nothing of it is imported.

    >>> [imports_code(each) for each in ("sjf+easy", "portfolio(easy, mine:Policy)", "mine:order+easy")]
    [False, True, True]
    >>> imports_code("portfolio(objective=min-max:wait_mean)")
    False
    """
    if ":" not in text or _depth(text) > DEEPEST:
        return ":" in text
    for part in _order_first(text)[::2]:
        name, _, parameters = part.partition("(")
        if ":" in name:
            return True
        if not _is_plain(name.strip()):
            values, named = read_parameters(parameters.removesuffix(")"))
            if "objective" in named:
                named["objective"] = _SCALE.sub("", named["objective"], count=1)
            if any(imports_code(each) for each in (*values, *named.values())):
                return True
    return False


def _is_plain(name: str) -> bool:
    """Whether a policy reads its parameters as words of its own."""
    source: Any = _ENTRIES[name].source if name in _ENTRIES else offered(GROUP).get(name)
    made = _load(source.partition("(")[0]) if isinstance(source, str) else source
    return _is_policy_class(made) and made.plain


def _depth(text: str) -> int:
    return max(accumulate((each == "(") - (each == ")") for each in text))


def _make(text: str, whole: str, asked: Sequence[Decides], **more: str) -> Policy:
    """Return the policy of a name with parameters."""
    name, values, options = split_call(text, f"policy {whole!r}")
    known = _ENTRIES if name in _ENTRIES else _known()  # entry points are looked up only if necessary
    first, colon, second = name.partition(":")
    if colon:
        if first in known:
            raise InputError(f"parameters must be in parentheses: {first}({second})", place=f"policy {whole!r}")
        if first.endswith(".py"):
            module = first[:-3].replace("/", ".")
            raise InputError(f"names a module, not a file: {module}:{second}", place=f"policy {name!r}")
        source = _load(name)
        if not callable(getattr(source, "decide", source)):
            raise InputError(f"{_EXPECTED}, got {source!r}", place=f"policy {name!r}")
        makes = isinstance(source, type)
    elif name in known:
        source = known[name].source
        if isinstance(source, str):
            path, _, preset = source.partition("(")
            source, options = _load(path), {**read_parameters(preset[:-1])[1], **options}
        makes = isinstance(source, type) or not (
            isinstance(source, Policy) or list(inspect.signature(source).parameters) == ["view"]  # itself a policy
        )
    else:
        if name in (others := offered(GROUP)):
            _load(others[name])  # raises: it cannot be imported
        kinds = {*asked, "anything"}
        fitting = [each for each, entry in known.items() if not asked or (entry.decides or _kind_of(entry)) in kinds]
        error = unknown("policy", name, fitting)
        error.message += unseen()
        raise error
    options |= more
    if makes:
        return policy(_made(name, source, values, options))
    if values or options:
        raise InputError(f"takes no parameters, got {', '.join([*values, *options])}", place=f"policy {name!r}")
    return policy(source)


def _made(name: str, source: Callable[..., Any], values: Sequence[str], options: dict[str, str]) -> Any:
    """Call a class or a factory with parameters, which are checked."""
    if isinstance(source, type) and issubclass(source, Policy) and source.of.__func__ is not Policy.of.__func__:  # type: ignore[attr-defined]
        source = source.of
    return call_with(source, values, options, f"policy {name!r}")


def _load(name: str) -> Any:
    """Import ``module:name``."""
    try:
        return load(name)
    except (ImportError, AttributeError) as error:
        raise InputError(str(error), place=f"policy {name!r}") from None
    except Exception as error:  # any error while the module is executed
        raise InputError(
            f"cannot import {name.partition(':')[0]!r}: {type(error).__name__}: {error}", place=f"policy {name!r}"
        ) from error


def labelled(
    given: Mapping[str, Any] | Iterable[Any],
    kind: str,
    several: str,
    *,
    purpose: str = "",
    check: Callable[[Any], object] | None = None,
    label: Callable[[Any], str] = label,
) -> dict[str, Any]:
    """Return the items by label, in order.

    Parameters
    ----------
    given
        a mapping of labels to items, or the items alone, labelled by ``label``
    kind, several
        the singular and the plural of an item, for messages
    purpose
        the purpose of the items, for messages
    check
        called with each item; raises if it is invalid
    label
        returns the label of an item; default: the name of a policy

    Raises
    ------
    InputError
        a duplicate label, no items, or a text instead of a list

    >>> labelled(["fcfs", "easy"], "policy", "policies")
    {'fcfs': 'fcfs', 'easy': 'easy'}
    """
    if isinstance(given, str):
        raise InputError(f"must be a list of {several}, got {given!r}", place=several)
    pairs = given.items() if isinstance(given, Mapping) else [(label(each), each) for each in given]
    found: dict[str, Any] = {}
    for name, each in pairs:
        if check is not None:
            check(each)
        if name in found:
            raise InputError(f"duplicate {kind} {name!r}; for different labels pass {{label: {kind}}}")
        found[str(name)] = each
    if not found:
        raise InputError(f"must have at least one {kind}{purpose}", place=several)
    return found
