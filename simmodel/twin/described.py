"""The platform that a scheduler's own description of its cluster amounts to."""

from __future__ import annotations

import attrs

from simmodel.display import Fields
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import ClusterOptions
from simmodel.platform.toml import to_toml
from simmodel.twin.notes import Unsupported

__all__ = ["Described"]


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
    """

    spec: ClusterSpec
    policy: str
    options: ClusterOptions = attrs.field(factory=ClusterOptions)
    unsupported: tuple[Unsupported, ...] = ()
    down: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()

    def toml(self) -> str:
        """Return the platform as TOML, with the policy and what is not expressed as comments."""
        comments = [f"policy: {self.policy}"]
        if self.options.overrun == "continue":
            comments.append("option: overrun = continue")
        if self.unsupported:
            comments += ["not expressed:", *(f"  {each}" for each in self.unsupported)]
        return to_toml(self.spec, comments)
