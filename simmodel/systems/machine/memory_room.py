"""Room in memory pools for tasks that wait for it: granted in turn, with eviction and spilling."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from simmodel.resources.data.data_holder import RoomClaim
from simmodel.resources.data.memory import MemoryPool
from simmodel.work.livetask import LiveData, LiveTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simmodel.environment import Environment

__all__ = ["RoomMaker"]


class RoomMaker:
    """Makes room in the pools of a machine for tasks that wait for it.

    Each pool serves its claims in order of arrival. To make room it first drops data that need not be kept, then moves
    data to its spill pool, as far as that has room that no task waits for; the spill pool may spill in turn. If no
    task uses memory and nothing moves, all claims would wait for ever: then the first claim that can be served
    overtakes the others.

    Parameters
    ----------
    env, pools
        the environment; the pools
    move_out
        starts to move data out of a pool, to its spill pool
    """

    def __init__(
        self, env: Environment, pools: Iterable[MemoryPool], move_out: Callable[[LiveData, MemoryPool], object]
    ) -> None:
        self._env = env
        self._move_out = move_out
        self._pools = tuple(pools)
        self._called = False

    def claim(self, pool: MemoryPool, task: LiveTask) -> RoomClaim:
        """Return the claim of a task for room; it happens with the data that the task still lacks."""
        claim = RoomClaim(self._env, task)
        pool.claims.append(claim)
        if len(pool.claims) > 1 or not self._admit(pool, claim):
            for each in self._pools:
                each.changed = self._look_again
            self._look_again()
        return claim

    def _look_again(self) -> None:
        """Serve the claims after the events of this instant that are already scheduled."""
        if not self._called:
            self._called = True
            self._env.call_at(self._env._now, self._serve)

    def _serve(self) -> None:
        for pool in self._pools:
            while pool.claims:
                task = pool.claims[0].task
                if not self._admit(pool, pool.claims[0]):
                    self._make_way(pool, pool.needs(task), _own(task), ())
                    break
        while self._deadlocked() and self._break_deadlock():
            pass
        self._called = False
        if not any(pool.claims for pool in self._pools):
            for pool in self._pools:
                pool.changed = None

    def _admit(self, pool: MemoryPool, claim: RoomClaim) -> bool:
        """Grant a claim if there is room; return whether it was granted."""
        task = claim.task
        missing = pool.take(task)
        if missing is None:
            pool.forget_unneeded(pool.needs(task), _own(task))
            missing = pool.take(task)
            if missing is None:
                return False
        pool.claims.remove(claim)
        claim.succeed(missing)
        return True

    def _make_way(
        self, pool: MemoryPool, amount: float, keep: Collection[LiveData], before: tuple[MemoryPool, ...]
    ) -> None:
        """Start to move data out of a pool, least recently used first, until an amount (bytes) will be free."""
        spill = pool.spill
        if spill is pool or spill in before or spill.claims:
            return
        lacking = pool.used + amount - pool.size - sum(data.size for data in pool.leaving)
        for data in pool.unused():
            if lacking <= 0:
                return
            if data in keep or data in spill.held or data in spill.arriving or not pool.must_move(data):
                continue
            spill.forget_unneeded(data.size)
            if spill.room_for(data.size):
                lacking -= data.size
                self._move_out(data, pool)
            else:
                self._make_way(spill, data.size, (), (*before, pool))

    # ------------------------------------------------------------------ deadlock

    def _deadlocked(self) -> bool:
        """Return whether a claim waits while no task uses memory and nothing moves."""
        return any(pool.claims for pool in self._pools) and not any(
            pool.takers or pool.arriving for pool in self._pools
        )

    def _break_deadlock(self) -> bool:
        """Serve one claim out of turn, or start to make room for one; return whether that was possible."""
        waiting = [(pool, claim) for pool in self._pools for claim in pool.claims]
        if any(self._admit(pool, claim) for pool, claim in waiting):
            return True
        for pool, claim in waiting:
            need, keep = pool.needs(claim.task), _own(claim.task)
            if self._move_all(self._enough(pool, need, keep), pool):
                return True
        for pool, claim in waiting:  # make room in the pool that they would spill to
            need, keep = pool.needs(claim.task), _own(claim.task)
            lacking = pool.used + need - pool.size
            spill = pool.spill
            if spill.spill is not pool and self._move_all(self._enough(spill, lacking, keep), spill):
                return True
        return False

    def _enough(self, pool: MemoryPool, amount: float, keep: Collection[LiveData]) -> list[LiveData]:
        """Return data whose move makes room for an amount (bytes) in a pool; empty if that is impossible."""
        spill = pool.spill
        if spill is pool:
            return []
        lacking = pool.used + amount - pool.size
        room = spill.size - spill.used
        room += sum(data.size for data in spill.unused() if not spill.must_move(data) and data not in pool.held)
        found = []
        for data in pool.unused():
            if lacking <= pool.size * 1e-12:
                break
            if 0 < data.size <= room and data not in keep and data not in spill.held and pool.must_move(data):
                found.append(data)
                lacking -= data.size
                room -= data.size
        return found if lacking <= pool.size * 1e-12 else []

    def _move_all(self, chosen: list[LiveData], pool: MemoryPool) -> bool:
        pool.spill.forget_unneeded(sum(data.size for data in chosen))
        for data in chosen:
            self._move_out(data, pool)
        return bool(chosen)


def _own(task: LiveTask) -> tuple[LiveData, ...]:
    return (*task.inputs, *task.outputs)
