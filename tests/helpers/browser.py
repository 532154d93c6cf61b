"""Headless Chromium of the system, as a fixture: a test module imports it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser; without one a test is skipped, or fails if ``SIMMODEL_NEED_BROWSER`` is 1."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        program = None
    if program is None or driver is None:
        message = "needs selenium, and chromium with chromedriver in the path (.ci/schedulers installs them)"
        if os.environ.get("SIMMODEL_NEED_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"):
        options.add_argument(option)
    found = webdriver.Chrome(options=options, service=Service(driver))
    yield found
    found.quit()
