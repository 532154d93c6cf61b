"""What all tests share: the same names, examples and pictures in every process, however busy the machine is."""

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.helpers import few_cases, stable_ids
from tests.helpers.examples import ALL, FEW, QUARTER
from tests.helpers.stable_ids import pytest_generate_tests, pytest_make_parametrize_id

BLOCKS = pytest.StashKey[int]()

__all__ = ["pytest_generate_tests", "pytest_make_parametrize_id"]

# Thousands of tests stay in memory: each look for garbage among all of it takes a second, and all looks took a third of
# the time. By default only _garbage_goes_once_it_is_much looks; with all examples, in CI, the collector works as usual.
gc.set_threshold(50_000, 20, 20)
gc.disable()
MUCH = 3_000_000
"""Blocks of memory, some 200 MB, that tests may leave behind before the collector looks."""
os.environ["MPLBACKEND"] = "agg"  # no windows, here and in the processes that tests start
# Tests interrupt processes, which inherit that a shell ignores SIGINT in what it starts in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A loaded machine is slow, not wrong. The examples are the same at each run: what fails, fails for everybody.
# --hypothesis-profile=thorough draws a quarter of them, =all all, =search new ones each time. Hypothesis also draws
# constants that it reads in loaded modules, which would make examples depend on what ran before.
if hasattr(providers, "is_local_module_file"):
    providers.is_local_module_file = lambda path: False
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", PATIENT, derandomize=True, max_examples=FEW)
settings.register_profile("thorough", PATIENT, derandomize=True, max_examples=QUARTER)
settings.register_profile("all", PATIENT, derandomize=True, max_examples=ALL)
settings.register_profile("search", PATIENT, print_blob=True)
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def _no_figure_is_left() -> Iterator[None]:
    """Close what a test drew: matplotlib warns of many open figures, whichever test opens the last."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Turn the collector on if all examples of Hypothesis run."""
    session.stash[BLOCKS] = sys.getallocatedblocks()
    if settings.default.max_examples > FEW:
        gc.enable()


@pytest.fixture(autouse=True)
def _garbage_goes_once_it_is_much(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the collector look once tests have left much behind."""
    yield
    stash = request.session.stash
    if sys.getallocatedblocks() > stash[BLOCKS] + MUCH:
        gc.collect()
        stash[BLOCKS] = sys.getallocatedblocks()


@pytest.fixture
def collector() -> Iterator[None]:
    """Have the collector of garbage work in a test as it does for users."""
    before = gc.isenabled()
    gc.enable()
    yield
    if not before:
        gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse ids that may differ between processes, and mark what only CI runs."""
    stable_ids.pytest_collection_modifyitems(items)
    few_cases.mark(items)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a longer search take more mutations of each file."""
    parser.addoption("--mutation-seed", type=int, default=0, help="seed of the mutations (default: 0)")
    parser.addoption("--mutations", type=int, help="mutations of each file (default: 15; of all examples 200)")
