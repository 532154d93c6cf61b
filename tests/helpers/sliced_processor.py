"""A custom processor; platforms of the tests select it as ``tests.helpers.sliced_processor:Refreshed``."""

from __future__ import annotations

from typing import Any

from simmodel.resources.processors.processor import Processor


class Refreshed(Processor):
    """Runs tasks in slices (option ``slice``, s) with pauses between them (option ``pause``, s)."""

    def execute(self, task: Any, seconds: float) -> Any:
        while seconds > 0:
            part = min(seconds, self.spec.options["slice"])
            yield self.env.timeout(part)
            seconds -= part
            if seconds > 0:
                yield self.env.timeout(self.spec.options["pause"])
