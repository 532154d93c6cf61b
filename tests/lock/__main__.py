"""``python -m tests.lock renew [PATTERN]``: record again what a pattern of ``AREA`` or ``AREA/CASE`` matches.

``python -m tests.lock check [PATTERN]`` only says what differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from fnmatch import fnmatchcase

from tests.lock import cases, store


def main() -> int:
    """Renew or check."""
    parser = argparse.ArgumentParser(prog="python -m tests.lock", description=__doc__)
    parser.add_argument("what", choices=("renew", "check", "times"))
    parser.add_argument("pattern", nargs="?", default="*", help="of areas, or of AREA/CASE; such as 'batch*'")
    options = parser.parse_args()
    cases.load()
    if options.what == "renew":
        changed = store.renew(options.pattern)
        print("\n".join(changed) if changed else "nothing changed")
        return 0
    said = []
    for area in cases.AREAS:
        if fnmatchcase(area, options.pattern):
            began = time.process_time()
            found = store.differences(store.recorded(area), store.compute(area))
            print(f"{area}: {len(cases.AREAS[area])} cases, {time.process_time() - began:.2f} s of CPU time")
            said += [f"{area}/{line}" for line in found]
    for area in cases.TEXTS:
        if fnmatchcase(area, options.pattern):
            began = time.process_time()
            old, new = store.recorded_texts(area), store.compute_texts(area)
            print(f"{area}: {len(new)} texts, {time.process_time() - began:.2f} s of CPU time")
            said += [f"{area}/{name}: another text" for name in {**old, **new} if old.get(name) != new.get(name)]
    print("\n".join(said))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
