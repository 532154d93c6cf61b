"""The log records of a twin in a file, for one test."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simmodel_site.twin import start_logging


@contextmanager
def recorded(path: Path) -> Iterator[Path]:
    """Write all records into a file while the block runs, and then leave logging as it was."""
    handler = start_logging("debug", path)
    try:
        yield path
    finally:
        logger = logging.getLogger("simmodel_site.twin")
        logger.removeHandler(handler)
        logger.propagate = True
        handler.close()
