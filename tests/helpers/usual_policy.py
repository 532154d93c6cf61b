"""The policy that a platform runs under if none is named: tests that run several kinds of system name it."""

from __future__ import annotations

from simmodel.runs.scenario import GivenPlatform, platform_of
from simmodel.systems.kinds import kind_of_platform


def usual_policy(platform: GivenPlatform) -> str:
    found: str = kind_of_platform(platform_of(platform)).policy
    return found
