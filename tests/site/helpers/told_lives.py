"""What a mirror was told of the life of each job."""

from collections import Counter

from simmodel_site.twin import Mirror
from simmodel_site.twin.events import JobEvent


def events_of(mirror: Mirror) -> list[JobEvent]:
    """Return all different events of jobs that a mirror was told or has found missing, job by job."""
    return [event for entry in mirror.ledger.entries.values() for *_, event in entry.facts]


def told_of(mirror: Mirror) -> Counter[tuple[int | str, str]]:
    """Return how many events there are by job and kind."""
    return Counter((event.job, event.kind) for event in events_of(mirror))
