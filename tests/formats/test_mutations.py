"""Mutated files: every reader answers with a result or with one sentence, in time, and never with nonsense."""

import warnings
import zlib

import numpy as np
import pytest

from simmodel.errors import SimmodelError, Stalled
from tests.helpers.mutations import Hang, mutated, within
from tests.helpers.readable_files import READERS

MOST_SECONDS = 5.0


@pytest.mark.parametrize("name", READERS)
def test_a_mutated_file_is_read_or_refused_in_one_sentence(name: str, tmp_path, request) -> None:
    reader = READERS[name]
    valid = reader.valid()
    path = tmp_path / reader.file
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    path.write_bytes(valid)
    assert not any(reader.use(path).values())
    for number in range(request.config.getoption("--mutations")):
        data = mutated(valid, rng)
        path.write_bytes(data)
        try:
            with warnings.catch_warnings(), within(MOST_SECONDS):
                warnings.simplefilter("ignore")
                odd = [what for what, found in reader.use(path).items() if found]
        except Stalled:
            continue
        except (SimmodelError, OSError) as error:
            sentence = str(error)
            if sentence.isprintable() and len(sentence) < 2000:
                continue
            odd = [f"no sentence: {sentence[:300]!r}"]
        except (Exception, Hang) as error:
            odd = [f"{type(error).__name__}: {str(error)[:300]}"]
        assert not odd, f"mutation {number} of {name}: {odd[0]}; the file: {data[:3000]!r}"
