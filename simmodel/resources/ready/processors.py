"""Ready processors: a GPU with several streams, an inference server, a rank of processing in memory.

The kernels of a GPU run together, as long as one alone does not fill it. The server of a large language model batches
continuously. Sources: G.-I. Yu et al., "Orca: a distributed serving system for transformer-based generative models",
OSDI 2022; W. Kwon et al., "Efficient memory management for large language model serving with PagedAttention", SOSP
2023.

The rank is an example of a custom processor: data are scattered over its banks before use. A rank of UPMEM's memory
has 64 small processors, each next to its own bank. Data from the host are interleaved byte by byte over all chips;
before a task can read them, a CPU core splits them and gives every bank its part. [J. Gomez-Luna, I. El Hajj, I.
Fernandez, C. Giannoula, G. F. Oliveira, O. Mutlu, "Benchmarking a new paradigm: experimental analysis and
characterization of a real processing-in-memory system", IEEE Access 10, 2022.]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any, ClassVar

from simpy.events import Timeout

from simmodel.resources.models import Option
from simmodel.resources.processors.processor import Data, Phase, Processor
from simmodel.resources.processors.services import CoreTicket, take_core
from simmodel.resources.processors.serving import Batched, BatchedProcessor, SharedProcessor
from simmodel.work.taskset import LiveData, LiveTask

__all__ = ["LLMServer", "MultiStreamGPU", "PIMRank"]


class MultiStreamGPU(SharedProcessor):
    """A GPU that runs a kernel in each of its streams, which are its ``cores``; kernels share it equally.

    A kernel alone runs at full speed but fills only the part ``share`` of the GPU: up to 1 / share kernels run together
    without slowing each other down. Its option is

    - ``share``: the part of the GPU that one kernel can use, above 0 and at most 1; default 1

    >>> from simmodel import Task, Workflow, simulate
    >>> from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="hbm")], architectures=[ArchitectureSpec(name="gpu")],
    ...     processors=[ProcessorSpec(name="gpu", type="GPU", architecture="gpu", pool="hbm", cores=4,
    ...                               model=MultiStreamGPU, options={"share": 0.5})])
    >>> simulate(spec, Workflow([Task(id=i, run=10) for i in range(4)]), "hrr").tasks["end"].tolist()
    [20.0, 20.0, 20.0, 20.0]
    """

    takes: ClassVar = {"share": Option(1.0, above=0, most=1)}

    def rates(self, running: Sequence[LiveTask]) -> Sequence[float]:
        """Return the rate of each kernel: 1 while all of them fit, else equal shares."""
        return [min(1.0, 1.0 / (self.options["share"] * len(running)))] * len(running)


class LLMServer(BatchedProcessor):
    """A server that adds a token to each request of its batch in each iteration; requests join and leave in between.

    A request is a task with the amounts ``prompt`` and ``output`` (tokens); at most ``cores`` at once. The
    first iteration of a request reads its prompt. An iteration takes ``iteration``, ``prefill`` per token of prompts
    that it reads, ``decode`` per other request, and ``attention`` per token in memory (s). The next request of
    the queue comes in if the memory of ``kv`` tokens has room for its prompt and its output. The result of a run has
    the column ``first_token`` (s).
    """

    amounts: ClassVar = ("prompt", "output")
    takes: ClassVar = {
        "kv": Option(inf, above=0),
        **{name: Option(0.0, unit="s") for name in ("iteration", "prefill", "decode", "attention")},
    }

    def run_time(self, amounts: Mapping[str, float]) -> float:
        """Return the seconds of a request alone; it never runs if it is larger than the memory."""
        o, prompt, output = self.options, amounts["prompt"], max(1.0, amounts["output"])
        if prompt + output > o["kv"]:
            return inf
        read = o["attention"] * (output * prompt + output * (output - 1) / 2)
        return float(output * o["iteration"] + prompt * o["prefill"] + (output - 1) * o["decode"] + read)

    def admits(self, task: LiveTask, running: Collection[LiveTask]) -> bool:
        """Return whether the memory has room for a request."""
        tokens = sum(each.amounts["prompt"] + each.amounts["output"] for each in (task, *running))
        return tokens <= float(self.options["kv"])

    def steps(self, task: LiveTask) -> int:
        return int(task.amounts["output"])

    def step(self, batch: Sequence[Batched]) -> float:
        """Return the seconds of an iteration."""
        o = self.options
        each = (o["decode"] if done else o["prefill"] * task.amounts["prompt"] for task, done in batch)
        return float(o["iteration"] + sum(each) + o["attention"] * sum(t.amounts["prompt"] + n for t, n in batch))

    def stepped(self, each: Batched) -> None:
        """Record the first token of a request."""
        if each.done == 1:
            self.services.note(each.task, "first_token", self.env.now)


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

    >>> from simmodel import Environment, Machine, TaskSet
    >>> from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
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
