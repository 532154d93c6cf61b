"""What policies that lie around another one have in common."""

from __future__ import annotations

from typing import Any

from simmodel.scheduling.protocol import Policy

__all__ = ["Around"]


class Around(Policy):
    """A policy that lets another one decide, its ``policy``, whose state is part of its own.

    >>> from simmodel.policies import Cap
    >>> isinstance(Cap("2MW"), Around), Cap("2MW").state()
    (True, {'policy': None})
    """

    policy: Policy

    def forget(self) -> None:
        """Reset the other policy: yet another one has decided since."""
        self.policy.forget()

    def state(self) -> Any:
        """Return the state of the other policy."""
        return {"policy": self.policy.state()}

    def restore(self, values: Any) -> None:
        """Restore the state of the other policy."""
        if values["policy"] is not None:
            self.policy.restore(values["policy"])
