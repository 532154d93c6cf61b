"""Draws ``images/tutorial/*.png``: the pictures of the pages in ``docs/tutorial``, by the lines of these pages."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests.helpers.doc_pages import PAGES  # noqa: E402

FOLDER = ROOT / "images/tutorial"


def main() -> None:
    """Run each page in an empty folder, and keep its pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        if not name.startswith("docs/tutorial/"):
            continue
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            script = ModuleType("__main__")
            with contextlib.redirect_stdout(io.StringIO()):
                for line, source, _ in page.examples:
                    exec(compile("\n" * line + source, name, "exec"), vars(script))
            for picture in Path().glob("*.png"):
                (FOLDER / picture.name).write_bytes(picture.read_bytes())
                print(picture.name, os.path.getsize(picture))


if __name__ == "__main__":
    main()
