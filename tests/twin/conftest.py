"""The servers that tests of streams share."""

from tests.helpers.redis_server import own_redis, shared_redis

__all__ = ["own_redis", "shared_redis"]
