"""Checks that authors of plug-ins run on what they write."""

from simmodel.testing.places import check_place
from simmodel.testing.policies import check_policy
from simmodel.testing.reachable import leaks, reachable
from simmodel.testing.systems import check_system

__all__ = ["check_place", "check_policy", "check_system", "leaks", "reachable"]
