"""Pages of long runs: how large, how soon drawn, how long a frame of a zoom takes; and what a watcher costs a run.

``python benchmarks/pages.py [JOBS ...]`` (default: 100,000 and 1,000,000) prints a line each; the browser draws without
a graphics card. Needs selenium, chromium and chromedriver.

``python benchmarks/pages.py --live [JOBS ...]`` (default: 100,000) runs a grid of 150 sites in a process of its own, in
turn alone, served but not watched, and watched from this process, which reads each message and page, as a browser does.
It prints the least CPU of three runs each, and the ratios.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from shutil import which
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import numpy as np

from simmodel import simulate, start
from simmodel.platform import GridSpec, NodeSpec, SiteSpec
from simmodel.work import Workload

SITES = 150
TURNS = 3

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
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

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


def run(jobs: int, how: str) -> None:
    """Run a grid alone, served or watched; print the address of its page, and the CPU of the run (s)."""
    rng = np.random.default_rng(1)
    spec = GridSpec(sites=[SiteSpec(name=f"s{i:03}", hosts=[NodeSpec(count=16, cores=64)]) for i in range(SITES)])
    duration, cores = rng.lognormal(8.2, 1.0, jobs), rng.choice([1, 8], jobs)
    submit = np.sort(rng.uniform(0.0, float(duration @ cores) / (SITES * 1024 * 0.8), jobs))
    work = Workload({"submit": submit, "run": duration, "processors": cores, "requested": duration})
    simulation = start(spec, work, "least-loaded")
    view = None if how == "alone" else simulation.serve()
    print("-" if view is None else view.url, flush=True)
    if how == "watched":
        sys.stdin.readline()  # somebody is there
    begun = time.process_time()
    simulation.run()
    print(time.process_time() - begun, flush=True)
    if view is not None:
        view.close()
        print(time.process_time() - begun, view.page[0], flush=True)


def watch(url: str, runs: subprocess.Popen[str]) -> int:
    """Read each message of a run, and each new page, as a browser does; return how many messages there were."""
    here = urlsplit(url)
    assert here.hostname is not None
    events = HTTPConnection(here.hostname, here.port, timeout=600)
    events.request("GET", f"{here.path}events")
    answer, shown, count = events.getresponse(), 0, 0
    assert runs.stdin is not None
    runs.stdin.write("go\n")
    runs.stdin.flush()
    for line in answer:
        if line.startswith(b"data: "):
            count += 1
            message = json.loads(line[6:])
            if message["version"] > shown:
                asked = HTTPConnection(here.hostname, here.port, timeout=600)
                asked.request("GET", f"{here.path}data")
                page = asked.getresponse()
                page.read()
                shown = int(page.headers["X-Version"])
            if message["over"]:
                asked = HTTPConnection(here.hostname, here.port, timeout=600)
                asked.request("POST", f"{here.path}act", '{"do": "seen"}')
                asked.getresponse()
    return count


def live(jobs: int) -> None:
    """Show what a watcher costs a run of so many jobs."""
    least: dict[str, float] = {}
    for _ in range(TURNS):
        for how in ("alone", "served", "watched"):
            command = [sys.executable, __file__, "--run", str(jobs), how]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runs:
                assert runs.stdout is not None
                url = runs.stdout.readline().strip()
                messages = watch(url, runs) if how == "watched" else 0
                cpu = float(runs.stdout.readline())
                rest = runs.stdout.read().split()
            least[how] = min(cpu, least.get(how, cpu))
            seen = (
                f", {messages} messages and {rest[1]} pages; {float(rest[0]) - cpu:.2f} s for the last"
                if messages
                else ""
            )
            print(f"  {how}: {cpu:.2f} s{seen}", flush=True)
    ratios = ", ".join(f"{how} {least[how]:.2f} s ({least[how] / least['alone']:.3f})" for how in ("served", "watched"))
    print(f"{jobs:,} jobs on {SITES} sites: alone {least['alone']:.2f} s, {ratios}", flush=True)


if __name__ == "__main__":
    asked = sys.argv[1:]
    if asked[:1] == ["--run"]:
        run(int(asked[1]), asked[2])
    elif asked[:1] == ["--live"]:
        for jobs in map(int, asked[1:] or ("100000",)):
            live(jobs)
    else:
        with TemporaryDirectory() as folder:
            for jobs in map(int, asked or ("100000", "1000000")):
                print(measure(jobs, Path(folder)), flush=True)
