"""Headless Chromium that opens pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

READY = "return document.documentElement.dataset.ready === 'true'"


def opened(*more: str) -> Iterator[Any]:
    """Yield headless Chromium of the system, or skip or fail where there is none; ``more``: its options."""
    needed = os.environ.get("SIMMODEL_NEED_BROWSER") == "1"
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        program = None
    if program is None or driver is None:
        message = "needs selenium, and chromium with chromedriver in the path (.ci/schedulers installs them)"
        if needed:
            pytest.fail(message)
        pytest.skip(message)
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,1600", *more):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    yield found
    found.quit()


def shown(browser: Any, path: Path, write: Any) -> Any:
    """Write a page, open it, and wait until it has drawn itself."""
    from selenium.webdriver.support.ui import WebDriverWait

    write(path)
    browser.get(path.as_uri())
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(READY))
    return browser


def settle(browser: Any) -> None:
    """Wait until what was asked for has been drawn."""
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))")
