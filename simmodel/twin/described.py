"""The platform that a scheduler's own description of its cluster amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from simmodel.display import Fields
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import ClusterOptions
from simmodel.platform.toml import to_toml
from simmodel.twin.notes import Unsupported

if TYPE_CHECKING:
    from simmodel.systems.submissions import GivenWork

__all__ = ["Described"]

_CYCLE = 5.0  # seconds: Slurm looks at the queue at most so long after something has happened, but for backfilling
_SAMPLE = 2000  # starts that are judged


@attrs.frozen(kw_only=True, repr=False)
class Described(Fields):
    """The cluster of a scheduler as a platform.

    Parameters
    ----------
    spec, policy, options
        the platform; the policy and the options that its scheduler amounts to
    unsupported
        what they do not express
    down, draining
        the nodes that were out of service when the scheduler was asked
    explained
        the shares of recorded starts that policies explain, the highest first; none: no log was asked
    """

    spec: ClusterSpec
    policy: str
    options: ClusterOptions = attrs.field(factory=ClusterOptions)
    unsupported: tuple[Unsupported, ...] = ()
    down: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    explained: Mapping[str, float] = attrs.field(factory=dict)

    def explained_by(self, log: GivenWork) -> Described:
        """Return this with the policy that explains the recorded starts of a log best: in order, or with backfilling.

        Raises
        ------
        InputError
            the log has no starts, or cannot be read
        """
        from simmodel.referee.identification import identify

        order = self.policy.removesuffix("conservative").removesuffix("+") or "fcfs"
        prefix = "" if order == "fcfs" else f"{order}+"
        candidates = [self.policy, order, f"{prefix}easy", f"{prefix}conservative"]
        found = identify(log, None, self.spec, list(dict.fromkeys(candidates)), tolerance=_CYCLE, sample=_SAMPLE)
        return attrs.evolve(self, policy=found.best, explained=found.shares)

    def toml(self) -> str:
        """Return the platform as TOML, with the policy and what is not expressed as comments."""
        comments = [f"policy: {self.policy}"]
        if self.explained:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in self.explained.items())
            comments.append(f"recorded starts explained within {_CYCLE:g} s: {shares}")
        if self.options.overrun == "continue":
            comments.append("option: overrun = continue")
        if self.unsupported:
            comments += ["not expressed:", *(f"  {each}" for each in self.unsupported)]
        return to_toml(self.spec, comments)
