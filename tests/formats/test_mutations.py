"""Mutated files: every reader answers with a result or with one sentence, in time and memory, never with nonsense.

The results of all readers are checked: no negative wait, and no nan that the valid file does not have.
"""

import warnings
import zlib

import numpy as np
import pytest

from simmodel.foundation.errors import SimmodelError, Stalled
from tests.helpers.examples import up_to
from tests.helpers.mutations import Hang, mutated, peak_memory, within
from tests.helpers.readable_files import READERS

MOST_SECONDS = 5.0
MOST_MEMORY = 2**30


@pytest.mark.few(12)
@pytest.mark.parametrize("name", READERS)
def test_a_mutated_file_is_read_or_refused_in_one_sentence(name: str, tmp_path, request) -> None:
    reader = READERS[name]
    valid = reader.valid()
    path = tmp_path / reader.file
    rng = np.random.default_rng([zlib.crc32(name.encode()), request.config.getoption("--mutation-seed")])
    path.write_bytes(valid)
    assert not any(reader.use(path).values())
    found: list[str] = []
    for number in range(request.config.getoption("--mutations") or up_to(200, 15)):
        data = mutated(valid, rng)
        before = peak_memory()
        path.write_bytes(data)
        try:
            with warnings.catch_warnings(), within(MOST_SECONDS):
                warnings.simplefilter("ignore")
                odd = [what for what, found in reader.use(path).items() if found]
                odd += ["memory"] if peak_memory() - before > MOST_MEMORY else []
        except Stalled:
            continue
        except (SimmodelError, OSError) as error:
            sentence = str(error)
            whole = sentence.isprintable() and len(sentence) < 2000
            odd = [] if whole else [f"no sentence: {sentence[:300]!r}"]
            odd += ["memory"] if peak_memory() - before > MOST_MEMORY else []
        except (Exception, Hang) as error:
            odd = [f"{type(error).__name__}: {str(error)[:300]}"]
        found += [f"mutation {number} of {name}: {each}; the file: {data[:3000]!r}" for each in odd]
    assert not found, f"{len(found)} of them:\n" + "\n".join(found[:10])
