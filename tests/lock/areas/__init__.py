"""The cases of each area."""

from tests.lock.areas import (
    batch,
    brokers,
    clusters,
    experiments,
    formats,
    machines,
    networks,
    snapshots,
    texts,
    whatifs,
)


def load_all() -> None:
    """Add all cases."""
    for module in (batch, clusters, machines, brokers, snapshots, whatifs, experiments, networks, formats, texts):
        module.add()
