"""An inference server of a large language model with continuous batching.

Sources: G.-I. Yu et al., "Orca: a distributed serving system for transformer-based generative models", OSDI 2022;
W. Kwon et al., "Efficient memory management for large language model serving with PagedAttention", SOSP 2023.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import ClassVar

from simmodel.resources.models import Option
from simmodel.resources.processors.serving import Batched, BatchedProcessor
from simmodel.work.taskset import LiveTask

__all__ = ["LLMServer"]


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
        """Return the tokens to generate."""
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
