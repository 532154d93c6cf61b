"""Draws ``images/page_*.png``: pages of results as headless Chromium shows them; needs chromedriver and selenium."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from simmodel import compare, simulate
from simmodel.records import NetworkRecorder
from simmodel.runs import start

IMAGES = Path(__file__).parent.parent / "images"
READY = "return document.documentElement.dataset.ready"
DRAWN = "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))"
COLOURS = 256  # of a picture


def grid(path: Path) -> None:
    """Write the page of a grid, with the load of its links."""
    simulation = start("tiers-30", "tiers-30-day", "least-loaded", name="tiers-30 under least-loaded")
    links = NetworkRecorder(simulation.system.data.network)
    simulation.system.env.observe(links)
    simulation.run().result().to_html(path, links=links)


PAGES: dict[str, tuple[int, bool, Callable[[Path], None]]] = {
    "week": (1160, False, lambda path: simulate(None, "lublin-128-week", "easy").to_html(path)),
    "comparison": (
        1560,
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
    "grid": "window.simmodelPage.openSite('T1-3'); document.querySelector('.map').closest('.chart').scrollIntoView()",
    "week": "window.simmodelPage.pick(357)",
}
"""What is done on a page before its picture is taken."""


def keep(browser: webdriver.Chrome, name: str) -> None:
    """Keep a picture of what the browser shows, in few colours."""
    browser.execute_async_script(DRAWN)
    picture = Image.open(BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / f"page_{name}.png", optimize=True)


def look(browser: webdriver.Chrome, height: int, dark: bool, address: str, ready: Any = READY) -> None:
    """Open a page in a window of this height."""
    browser.set_window_size(1200, height)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(address)
    WebDriverWait(browser, 60).until(lambda b: b.execute_script(ready))


def draw(browser: webdriver.Chrome, name: str, folder: Path) -> None:
    """Write a page, open it, and keep its picture."""
    height, dark, write = PAGES[name]
    write(folder / f"{name}.html")
    look(browser, height, dark, (folder / f"{name}.html").as_uri())
    browser.execute_script(FIRST.get(name, ""))
    keep(browser, name)


def draw_live(browser: webdriver.Chrome) -> None:
    """Keep a picture of the page of a long run, 4,000 jobs after its begin."""
    simulation = start(None, "lublin:jobs=50000,processors=256", "easy", seed=1, name="50,000 jobs under easy")
    with simulation.serve() as live:
        live.act("speed", 400_000)
        run = Thread(target=simulation.run)
        run.start()
        look(browser, 1130, False, live.url, "return window.simmodelLive?.ended > 4000")
        keep(browser, "live")
        live.act("stop")
        run.join()


if __name__ == "__main__":
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(option)
    browser = webdriver.Chrome(options=options, service=Service(which("chromedriver")))
    with TemporaryDirectory() as folder:
        for name in PAGES:
            draw(browser, name, Path(folder))
    draw_live(browser)
    browser.quit()
