"""The servers that tests of the twin share: streams, and a Slurm of virtual nodes."""

from tests.site.helpers.redis_server import own_redis, shared_redis, slurm_stream
from tests.site.helpers.slurm_cluster import shared_slurm, slurm

__all__ = ["own_redis", "shared_redis", "shared_slurm", "slurm", "slurm_stream"]
