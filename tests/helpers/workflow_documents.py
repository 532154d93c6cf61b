"""Small workflow documents for the tests of their formats."""

import io
import json
from typing import Any

__all__ = ["GOOD", "TEXT", "as_file", "wfformat"]

# A graph of DAGGEN, in its text form.
TEXT = """// DAG automatically generated
// daggen -n 3
NODE_COUNT 6
NODE 0 1,2 ROOT 0.0 0.0
NODE 1 4 COMPUTATION 2000 0.15
NODE 2 6 COMPUTATION 3000 0.05
NODE 4 5 TRANSFER 800 0.0
NODE 5 6 COMPUTATION 500 0.20
NODE 6 - END 0.0 0.0
"""

# A task of SST.
GOOD = {"id": 1, "execution_time": 1}


def wfformat(**changes: Any) -> dict[str, Any]:
    """Return a small document with changes at paths of keys: ``workflow__specification=...``."""
    document: dict[str, Any] = {
        "name": "small",
        "schemaVersion": "1.6",
        "author": {"name": "Ann"},
        "workflow": {
            "specification": {
                "tasks": [
                    {"id": "a", "name": "split", "parents": [], "children": ["b"], "outputFiles": ["f"]},
                    {"id": "b", "name": "use", "parents": ["a"], "children": [], "inputFiles": ["f"]},
                ],
                "files": [{"id": "f", "sizeInBytes": 512}],
                "metrics": {"numberOfTasks": 2},
            },
            "execution": {
                "makespanInSeconds": 14.5,
                "executedAt": "2026-08-04T15:20:00-08:00",
                "tasks": [
                    {
                        "id": "a",
                        "runtimeInSeconds": 4.5,
                        "executedAt": "2026-08-04T23:20:01+00:00",
                        "command": {"program": "split", "arguments": ["-n"]},
                        "readBytes": 1024,
                    },
                    {"id": "b", "runtimeInSeconds": 9, "coreCount": 1.5, "priority": -2, "memoryInBytes": 1e6},
                ],
                "machines": [{"nodeName": "n", "cpu": {"coreCount": 8, "speedInMHz": 3600, "vendor": "AMD"}}],
            },
        },
    }
    for path, value in changes.items():
        at: Any = document
        *keys, last = [int(key) if key.isdecimal() else key for key in path.split("__")]
        for key in keys:
            at = at[key]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return document


def as_file(document: Any) -> io.StringIO:
    """Return a document as an open file of JSON."""
    return io.StringIO(json.dumps(document))
