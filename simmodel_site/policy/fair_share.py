"""Fair share: usage that decays, by association, and the factors of Fair Tree and of the older algorithm.

Source: priority/multifactor of Slurm 22.05, by its behaviour, and its page on Fair Tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel_site.policy.accounts import Association

if TYPE_CHECKING:
    from simmodel_site.policy.accounts import Accounts

__all__ = ["Bill", "Charges", "FairShare", "decay_of"]

_NEVER = 4294967294.0
"""The level of an account that takes the shares of its parent; it has no part in the order but by this number."""


def decay_of(half_life: float) -> float:
    """Return what is left of usage after a second, by ``PriorityDecayHalfLife`` (s); 0: it does not decay.

    >>> decay_of(300.0), decay_of(0.0)
    (0.99769, 1.0)
    """
    return 1.0 - 0.693 / half_life if half_life else 1.0


class _Node:
    """An association in the tree: ``parent`` by its account, ``above`` by its shares."""

    __slots__ = ("above", "children", "effective", "factor", "known", "level", "of", "parent", "shares", "usage")

    def __init__(self, of: Association, parent: _Node | None) -> None:
        self.of = of
        self.parent = self.above = parent
        while self.above is not None and self.above.of.shares is None:
            self.above = self.above.above
        self.children: list[_Node] = []  # by their shares, as Slurm goes through them: the last one first
        self.usage = of.usage
        self.shares = self.effective = self.factor = 0.0
        self.level = inf
        self.known = False  # whether the effective usage is that of this period


class FairShare:
    """The usage and the fair share of the associations of a cluster.

    Usage is billed resources times seconds. All of it decays at each calculation, and what a job has used since then is
    added, decayed by its own length. With Fair Tree, factors are those of the last calculation. Else the effective
    usage of accounts is known when usage has decayed, and that of a user when it is first asked for after that; both
    are kept until usage decays again.

    Parameters
    ----------
    accounts
        the associations; those of equal rank come in the reverse order of these
    half_life
        ``PriorityDecayHalfLife`` (s); 0: usage does not decay
    fair_tree
        whether users are ranked by Fair Tree; else ``NO_FAIR_TREE``
    damping
        ``FairShareDampeningFactor``

    >>> from simmodel_site.policy.accounts import Accounts
    >>> tree = FairShare(
    ...     Accounts(
    ...         associations=[
    ...             Association(account="physics", shares=3),
    ...             Association(account="physics", user="ada"),
    ...             Association(account="physics", user="bob"),
    ...         ]
    ...     ),
    ...     half_life=300.0,
    ... )
    >>> tree.charge("physics", "ada", 10.0, 7.0)
    >>> tree.calculate()
    >>> tree.factor("physics", "ada"), tree.factor("physics", "bob")
    (0.5, 1.0)
    """

    def __init__(
        self, accounts: Accounts, *, half_life: float = 7 * 86400.0, fair_tree: bool = True, damping: float = 1.0
    ) -> None:
        self._decay = decay_of(half_life)
        self.fair_tree = fair_tree
        self._damping = damping
        given = list(accounts.associations)
        root = next((each for each in given if each.account == "root" and each.user is None), None)
        self._root = _Node(root or Association(account="root"), None)
        self._accounts: dict[str, _Node] = {"root": self._root}
        self._nodes: dict[tuple[str, str | None, str | None], _Node] = {}
        self._users = 0
        self._all = [self._root]
        for each in sorted(given, key=lambda each: len(list(accounts.path(each)))):
            if each is not root:
                self._add(each)
        for parent in self._all:
            parent.children.sort(key=lambda node: -given.index(node.of))
            total = sum(each.of.shares or 0 for each in parent.children)
            for child in parent.children:
                child.shares = (child.of.shares or 0) / total if total else 0.0
        self.calculate()

    def _add(self, each: Association) -> None:
        node = _Node(each, self._accounts[each.account if each.user is not None else each.parent])
        self._all.append(node)
        if each.user is None:
            self._accounts[each.account] = node
        else:
            self._users += 1
            self._nodes[each.account, each.user, each.partition] = node
        if node.above is not None:
            node.above.children.append(node)

    def factor(self, account: str, user: str, partition: str | None = None) -> float:
        """Return the factor of fair share of an association, from 0 to 1; 0: it is unknown."""
        node = self._nodes.get((account, user, partition))
        if node is None:
            return 0.0
        if not self.fair_tree:
            self._classic(node)
        return node.factor

    def charge(self, account: str, user: str, amount: float, seconds: float, partition: str | None = None) -> None:
        """Add what a job has used: an amount of billed resources, times seconds; an unknown association is ignored."""
        node = self._nodes.get((account, user, partition))
        new = amount * seconds * self._decay**seconds
        while node is not None:
            node.usage += new
            node = node.parent

    def decay(self, seconds: float) -> None:
        """Let all usage decay for some seconds."""
        by = self._decay**seconds
        for node in self._all:
            node.usage *= by
            node.known = False
        if not self.fair_tree:
            for node in self._all:
                if node.of.user is None:
                    self._part(node)

    def calculate(self) -> None:
        """Rank all users, if Fair Tree does."""
        self._rank = self._next = self._users
        if self.fair_tree:
            self._climb(self._root.children, False)

    # ------------------------------------------------------------------ Fair Tree

    def _climb(self, siblings: Iterable[_Node], tied: bool) -> None:
        """Rank the users among siblings and below them; ``tied``: with the one before them."""
        for node in siblings:
            self._measure(node)
        ordered = sorted(siblings, key=lambda node: (-node.level, node.of.user is None))
        before: float | None = None
        for node in ordered:
            same = tied if before is None else before == node.level
            if node.of.user is None:
                self._climb(node.children, same)
            else:
                if not same:
                    self._rank = self._next
                node.factor = self._rank / self._users
                self._next -= 1
            before = node.level

    def _measure(self, node: _Node) -> None:
        """Calculate the level of an association: its shares among its siblings, by its part of their usage."""
        above = node.above
        node.effective = node.usage / above.usage if above is not None and above.usage else 0.0
        if node.of.shares is None:
            node.level = inf if node.of.user is not None else _NEVER
        elif not node.shares:
            node.level = 0.0
        else:
            node.level = node.shares / node.effective if node.effective else inf

    # ------------------------------------------------------------------ NO_FAIR_TREE

    def _classic(self, node: _Node) -> None:
        """Calculate the factor of an association by its effective usage, a part of that of its siblings included."""
        shares, effective = self._part(node)
        node.factor = 2.0 ** -(effective / shares / self._damping) if shares else 0.0

    def _part(self, node: _Node) -> tuple[float, float]:
        """Return the shares of an association in the whole tree, and its effective usage."""
        above = node.above
        if above is None:
            return 1.0, 1.0
        shares, effective = self._part(above)
        if node.of.shares is None:
            node.effective = effective
            return shares, effective
        if not node.known:
            norm = node.usage / self._root.usage if self._root.usage else 0.0
            node.effective = norm if above is self._root else norm + (effective - norm) * node.shares
            node.known = True
        return shares * node.shares, node.effective

    # ------------------------------------------------------------------ tables and state

    def table(self) -> list[tuple[str, str | None, float, float, float]]:
        """Return of each association: account, user, usage, effective usage and factor, as ``sshare`` prints them."""
        if not self.fair_tree:
            for node in self._all[1:]:
                self._classic(node)
        return [(each.of.account, each.of.user, each.usage, each.effective, each.factor) for each in self._all]

    def state(self) -> list[list[float]]:
        """Return the usage and the factor of each association, in order."""
        return [[each.usage, each.factor] for each in self._all]

    def restore(self, values: Iterable[Iterable[float]]) -> None:
        """Restore the values of :meth:`state`."""
        for node, (usage, factor) in zip(self._all, values, strict=True):
            node.usage, node.factor = usage, factor


_number = itemgetter(0)


class Bill(NamedTuple):
    """What a running job is charged: its association, billed resources, and its start (s, whole)."""

    account: str
    user: str
    partition: str | None
    amount: float
    start: int


class Charges:
    """The charges of running jobs: at each calculation, and at the end of each.

    Parameters
    ----------
    share
        the fair share of the associations
    first, period
        the instant of a calculation, and the seconds from one to the next
    """

    def __init__(self, share: FairShare, first: float = 0.0, period: float = 300.0) -> None:
        self.share = share
        self._first, self._period = first, period
        self.last = int(first)
        self._bills: dict[int, Bill] = {}

    def started(self, number: int, bill: Bill) -> None:
        """Note a job that runs from now on; jobs are charged in the order of their numbers."""
        self._bills[number] = bill

    def ended(self, number: int, at: float) -> None:
        """Charge a job for the time since the last calculation: it has ended at an instant (s)."""
        bill = self._bills.pop(number, None)
        if bill is not None:
            self._charge(bill, int(at))

    def _charge(self, bill: Bill, until: int) -> None:
        seconds = until - max(bill.start, self.last)
        if seconds > 0:
            self.share.charge(bill.account, bill.user, bill.amount, float(seconds), bill.partition)

    def pass_to(self, now: float, waiting: Callable[[float], list[tuple[int, Callable[[], None]]]]) -> bool:
        """Calculate at all instants until now (s); return whether there were any.

        Parameters
        ----------
        waiting
            returns what :meth:`calculate` wants to know of the jobs that wait at an instant
        """
        some = False
        while (at := self.next()) <= now:
            jobs = waiting(at)
            if not self._bills and not jobs:  # usage only decays
                at += (now - at) // self._period * self._period
            self.calculate(at, jobs)
            some = True
        return some

    def next(self) -> float:
        """Return the instant of the next calculation (s)."""
        return self._first + ((self.last - int(self._first)) // self._period + 1) * self._period

    def calculate(self, at: float, waiting: Iterable[tuple[int, Callable[[], None]]] = ()) -> None:
        """Let usage decay, charge all running jobs, and rank users.

        Parameters
        ----------
        at
            the instant (s)
        waiting
            the numbers of waiting jobs, and what is called for each when its factor is known
        """
        share = self.share
        share.decay(float(int(at) - self.last))
        charges: list[tuple[int, Callable[[], None]]] = [
            (number, partial(self._charge, bill, int(at))) for number, bill in self._bills.items()
        ]
        first, then = sorted(charges, key=_number), sorted(waiting, key=_number)
        if not share.fair_tree:  # waiting jobs see what those before them have used
            first, then = sorted([*first, *then], key=_number), []
        for _, call in first:
            call()
        share.calculate()
        for _, call in then:
            call()
        self.last = int(at)

    def state(self) -> dict[str, list[list[float]] | int]:
        """Return the last calculation, and the usage and the factors of all associations."""
        return {"last": self.last, "share": self.share.state()}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`; running jobs are noted anew."""
        self.last = int(values["last"])
        self.share.restore(values["share"])
