"""Pages of long runs: how large, how soon drawn, how long a frame of a zoom takes, in headless Chromium.

``python benchmarks/pages.py [JOBS ...]`` (default: 100,000 and 1,000,000) prints a line each; the browser draws without
a graphics card. Needs selenium, chromium and chromedriver.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from shutil import which
from statistics import median
from tempfile import TemporaryDirectory

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from simmodel import simulate

FRAMES = """
const page = window.simmodelPage, [from, to] = page.head.span, taken = [];
for (let i = 0; i < 30; i++) {
  page.look(from + i, from + (to - from) * 0.9 ** i);
  const begun = performance.now();
  page.drawAll();
  for (const chart of page.charts) chart.canvas.getContext("2d").getImageData(0, 0, 1, 1); // waits until it is drawn
  taken.push(performance.now() - begun);
}
return taken;
"""


def measure(jobs: int, folder: Path) -> str:
    """Return a line on the page of a run of so many jobs."""
    result = simulate(None, f"lublin:jobs={jobs},processors=256", "easy", seed=1)
    path = folder / f"{jobs}.html"
    begun = time.process_time()
    result.to_html(path)
    written = time.process_time() - begun
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,1600"):
        options.add_argument(option)
    browser = webdriver.Chrome(options=options, service=Service(which("chromedriver")))
    try:
        begun = time.perf_counter()
        browser.get(path.as_uri())
        ready = "return document.documentElement.dataset.ready"
        WebDriverWait(browser, 120, 0.02).until(lambda b: b.execute_script(ready))
        drawn = time.perf_counter() - begun
        frames = browser.execute_script(FRAMES)
    finally:
        browser.quit()
    return (
        f"{jobs:>9,} jobs: {path.stat().st_size / 1e6:5.1f} MB, written in {written:5.1f} s, first picture after "
        f"{drawn:4.1f} s, a frame {median(frames):4.0f} ms (most {max(frames):4.0f})"
    )


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        for jobs in map(int, sys.argv[1:] or ("100000", "1000000")):
            print(measure(jobs, Path(folder)), flush=True)
