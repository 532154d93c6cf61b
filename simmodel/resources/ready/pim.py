"""A processing-in-memory rank, an example of a custom processor: data are scattered over its banks before use.

A rank of UPMEM's memory has 64 small processors, each next to its own bank. Data from the host are interleaved byte by
byte over all chips; before a task can read them, a CPU core splits them and gives every bank its part. [J. Gomez-Luna,
I. El Hajj, I. Fernandez, C. Giannoula, G. F. Oliveira, O. Mutlu, "Benchmarking a new paradigm: experimental analysis
and characterization of a real processing-in-memory system", IEEE Access 10, 2022.]
"""

from __future__ import annotations

from typing import Any, ClassVar

from simpy.events import Timeout

from simmodel.resources.models import Option
from simmodel.resources.processors.processor import Data, Phase, Processor
from simmodel.resources.processors.services import CoreTicket, take_core
from simmodel.work.taskset import LiveData, LiveTask

__all__ = ["PIMRank"]


class PIMRank(Processor):
    """A rank of memory with processors in it: the inputs of a task are first scattered over its banks, once.

    Only its transfer phase differs from other processors. Its own outputs are already scattered; data that were
    evicted and return are scattered again. A platform selects it by ``model``; its ``options`` are the cost of
    scattering:

    - ``scatter``: bytes/s at which a CPU core, held meanwhile, scatters data, or a text such as ``"4GB/s"``
    - ``start``: additional seconds per data object; default 0

    Parameters
    ----------
    services, name, spec, pool, index, kind
        see :class:`~simmodel.resources.processors.processor.Processor`

    Raises
    ------
    InputError
        an option is missing, unknown or not a quantity

    >>> from simmodel import Environment
    >>> from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> from simmodel.platform import LinkSpec
    >>> from simmodel import Machine
    >>> from simmodel import TaskSet
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="host"), MemoryPoolSpec(name="mram", size=4e9)],
    ...     architectures=[ArchitectureSpec(name="x86"), ArchitectureSpec(name="dpu")],
    ...     processors=[ProcessorSpec(name="core", type="CPUCore", architecture="x86", pool="host"),
    ...                 ProcessorSpec(name="rank", type="PIM", architecture="dpu", pool="mram", dma=False,
    ...                               model="pim", options={"scatter": "2GB/s"})],
    ...     links=[LinkSpec(name="bus", bandwidth="1GB/s", between=("host", "mram"))])
    >>> env = Environment()
    >>> machine = Machine(env, spec)
    >>> both = TaskSet([1.0, 1.0], inputs=[(0,), (0,)], sizes=[4e9], implementations=[("PIM",)] * 2)
    >>> _ = env.run(machine.submit(both))
    >>> tasks = machine.result().tasks                  # 4 s over the bus and 2 s to scatter it, for the first alone
    >>> (tasks["transfer_end"] - tasks["transfer_start"]).tolist(), tasks["end"].tolist()
    ([6.0, 0.0], [7.0, 8.0])
    """

    takes: ClassVar = {"scatter": Option(unit="B/s", above=0), "start": Option(0.0, unit="s")}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._scattered: dict[LiveData, None] = {}

    def own_state(self) -> Any:
        """Return the data that are scattered."""
        return list(self._scattered)

    def restore_own(self, values: Any) -> None:
        """Take back the data that are scattered."""
        self._scattered = dict.fromkeys(values)

    def transfer(self, task: LiveTask, missing: Data) -> Phase:
        """Bring the inputs of a task, then scatter those that are not scattered yet."""
        yield from super().transfer(task, missing)
        for data in missing:  # new copies arrive unscattered
            self._scattered.pop(data, None)
        whole = [data for data in task.inputs if data not in self._scattered]
        self._scattered.update(dict.fromkeys((*whole, *task.outputs)))
        seconds = sum(self.options["start"] + data.size / self.options["scatter"] for data in whole)
        if not seconds:
            return
        core: Any = take_core(self.env, self.setup_cores) if self.setup_cores else None
        if type(core) is CoreTicket:
            core = yield core
        since = self.env.now
        yield Timeout(self.env, seconds)
        if core is not None:
            core.release()
            self.services.held_core(core, task, "transfer", since)
