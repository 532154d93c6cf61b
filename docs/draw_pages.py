"""Draws ``images/page_*.png``: pages of results as headless Chromium shows them; needs chromedriver and selenium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from simmodel import compare, simulate
from simmodel.records import NetworkRecorder
from simmodel.runs import start

IMAGES = Path(__file__).parent.parent / "images"


def grid(path: Path) -> None:
    """Write the page of a grid, with the load of its links."""
    simulation = start("tiers-30", "tiers-30-day", "least-loaded", name="tiers-30 under least-loaded")
    links = NetworkRecorder(simulation.system.data.network)
    simulation.system.env.observe(links)
    simulation.run().result().to_html(path, links=links)


PAGES: dict[str, tuple[int, bool, Callable[[Path], None]]] = {
    "week": (1120, False, lambda path: simulate(None, "lublin-128-week", "easy").to_html(path)),
    "comparison": (
        1500,
        False,
        lambda path: compare(None, "lublin-128-week", ["fcfs", "easy", "sjf+easy"]).to_html(
            path, title="three policies"
        ),
    ),
    "grid": (1180, False, grid),
    "machine": (1000, True, lambda path: simulate("hetsim-slow-setup", "layered:n=40,fat=0.5", "heft").to_html(path)),
}
"""Height in pixels, whether dark, and what writes the page."""
FIRST = {
    "grid": "window.simmodelPage.openSite('T1-3'); document.querySelector('.map').closest('.chart').scrollIntoView()"
}
"""What is done on a page before its picture is taken."""


def draw(browser: webdriver.Chrome, name: str, folder: Path) -> None:
    """Write a page, open it, and keep its picture."""
    height, dark, write = PAGES[name]
    write(folder / f"{name}.html")
    browser.set_window_size(1200, height)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get((folder / f"{name}.html").as_uri())
    WebDriverWait(browser, 60).until(lambda b: b.execute_script("return document.documentElement.dataset.ready"))
    browser.execute_script(FIRST.get(name, ""))
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))")
    browser.save_screenshot(str(IMAGES / f"page_{name}.png"))


if __name__ == "__main__":
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(option)
    browser = webdriver.Chrome(options=options, service=Service(which("chromedriver")))
    with TemporaryDirectory() as folder:
        for name in PAGES:
            draw(browser, name, Path(folder))
    browser.quit()
