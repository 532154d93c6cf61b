"""The page in a browser: zoom, hover, search, row to rectangle, keyboard, dark, narrow, and nothing leaves it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from simmodel import Job, Result, Task, Workflow, compare, simulate, start
from simmodel.records import NetworkRecorder
from tests.helpers.chromium import READY, settle, shown

pytestmark = pytest.mark.live

INNER = """
const chart = window.simmodelPage.gantts[0];
const box = chart.canvas.getBoundingClientRect();
return [box.left, box.top, chart.margin, chart.inner, chart.plot, chart.wide];
"""


@pytest.fixture(scope="module")
def week() -> Result:
    return simulate(None, "lublin-128-week", "easy")


@pytest.fixture
def page(browser: Any, week: Result, tmp_path: Path) -> Iterator[Any]:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get_log("browser")
    yield shown(browser, tmp_path / "a run.html", lambda path: week.to_html(path, explain=[longest_wait(week)]))
    severe = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert severe == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def longest_wait(week: Result) -> int:
    return int(week.jobs["job"][np.argmax(week.jobs["wait"])])


def view(browser: Any) -> tuple[float, float]:
    found = browser.execute_script("const v = window.simmodelPage.view; return [v.from, v.to]")
    return float(found[0]), float(found[1])


def point(browser: Any, week: Result, row: int) -> tuple[float, float]:
    """Return the middle of the first rectangle of a job, in pixels from the corner of its picture."""
    return tuple(  # type: ignore[return-value]
        browser.execute_script(
            "const g = window.simmodelPage.gantts[0], i = g.row.indexOf(arguments[0]);"
            "return [(g.x(g.start[i]) + g.x(g.end[i])) / 2, g.y((g.low[i] + g.high[i]) / 2)]",
            row,
        )
    )


def at_point(browser: Any, x: float, y: float) -> Any:
    """Return the mouse above a point of the schedule."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    canvas = browser.find_element(By.CSS_SELECTOR, "canvas[role=img]")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    size = canvas.size
    return ActionChains(browser).move_to_element_with_offset(
        canvas, round(x - size["width"] / 2), round(y - size["height"] / 2)
    )


def longest(week: Result) -> int:
    return int(np.argmax(week.jobs["run"] * week.jobs["processors"]))


def test_hover_says_what_a_rectangle_is(page: Any, week: Result) -> None:
    row = longest(week)
    at_point(page, *point(page, week, row)).perform()
    text = page.execute_script("return document.querySelector('.tip').textContent")
    assert text.startswith(f"job {week.jobs['job'][row]}\n")
    assert f"processors: {week.jobs['processors'][row]}" in text


def test_a_click_picks_the_job_and_its_row(page: Any, week: Result) -> None:
    row = longest(week)
    at_point(page, *point(page, week, row)).click().perform()
    picked = page.execute_script("return document.querySelector('tr[aria-selected=true]').dataset.row")
    assert int(picked) == row
    facts = page.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('.picked dl div')]"
        ".map((e) => [e.children[0].textContent, e.children[1].title || e.children[1].textContent]))"
    )
    for name in ("submit", "start", "end", "wait"):
        assert float(facts[name]) == week.jobs[name][row]
    assert facts["status"] == "completed"


def test_the_wheel_zooms_at_the_mouse_and_a_double_click_shows_all(page: Any, week: Result) -> None:
    before = view(page)
    assert before == (week.started, week.ended)
    x, y = point(page, week, longest(week))
    instant = page.execute_script("return window.simmodelPage.gantts[0].instant(arguments[0])", x)
    at_point(page, x, y).perform()
    page.execute_cdp_cmd(
        "Input.dispatchMouseEvent",
        {"type": "mouseWheel", "deltaX": 0, "deltaY": -300, **corner(page, x, y)},
    )
    settle(page)
    begin, end = view(page)
    assert (end - begin) == pytest.approx((before[1] - before[0]) / 2)
    assert (instant - begin) / (end - begin) == pytest.approx((instant - before[0]) / (before[1] - before[0]), abs=0.01)
    at_point(page, x, y).double_click().perform()
    settle(page)
    assert view(page) == before


def corner(browser: Any, x: float, y: float) -> dict[str, float]:
    left, top, *_ = browser.execute_script(INNER)
    return {"x": left + x, "y": top + y}


def test_keys_move_and_zoom(page: Any, week: Result) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    canvas = page.find_element(By.CSS_SELECTOR, "canvas[role=img]")
    span = week.ended - week.started
    for keys, expected in (
        ("+", (0.25, 0.75)),
        (Keys.ARROW_RIGHT, (0.35, 0.85)),
        (Keys.HOME, (0.0, 0.5)),
        (Keys.END, (0.5, 1.0)),
        ("0", (0.0, 1.0)),
    ):
        canvas.send_keys(keys)
        settle(page)
        assert [(at - week.started) / span for at in view(page)] == pytest.approx(expected)


def test_rows_are_searched_sorted_and_shown(page: Any, week: Result) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def counted(text: str) -> None:
        found = "return document.querySelector('span[role=status]').textContent"
        WebDriverWait(page, 20).until(lambda driver: driver.execute_script(found) == text)

    row = int(np.argmax(week.jobs["wait"]))
    search = page.find_element(By.CSS_SELECTOR, "input[type=search]")
    search.send_keys(str(week.jobs["job"][row]))
    counted("1 of 600")
    page.find_element(By.CSS_SELECTOR, "tr[data-row]").click()
    settle(page)
    begin, end = view(page)
    assert begin <= week.jobs["start"][row]
    assert week.jobs["end"][row] <= end
    assert f"job {week.jobs['job'][row]}" in page.find_element(By.CSS_SELECTOR, ".picked").text
    assert "needs" in page.find_element(By.CSS_SELECTOR, ".picked pre").text  # its explanation was asked for
    page.execute_script("window.simmodelPage.rows.search('')")
    counted("600 of 600")
    head = next(each for each in page.find_elements(By.CSS_SELECTOR, "thead button") if each.text == "wait")
    for expected in (week.jobs["wait"].min(), week.jobs["wait"].max()):
        head.click()
        first = int(page.find_element(By.CSS_SELECTOR, "tr[data-row]").get_attribute("data-row"))
        assert week.jobs["wait"][first] == expected


def test_the_page_says_what_the_result_says(page: Any, week: Result) -> None:
    rows = page.execute_script(
        "const {table} = window.simmodelPage;"
        "const value = (column, row) => column.words ? column.words[column.values[row]] : column.values[row];"
        "return [...Array(200).keys()].map((row) => table.columns.map((column) => value(column, row)))"
    )
    names = page.execute_script("return window.simmodelPage.table.columns.map((c) => c.name)")
    for name, *values in zip(names, *rows, strict=True):
        assert values == week.jobs[name][:200].tolist(), name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_theme(page: Any, scheme: str) -> None:
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    settle(page)
    colour = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}[scheme]
    page.execute_script("document.querySelector('header button').click()")
    settle(page)
    assert page.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_narrow_page_is_not_wider_than_its_window(page: Any) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    settle(page)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    assert page.execute_script("return window.simmodelPage.gantts[0].canvas.width") > 600  # sharp


@pytest.mark.parametrize("width", [1400, 390])
def test_metrics_of_many_runs_are_seen_beside_their_names(browser: Any, tmp_path: Path, width: int) -> None:
    found = compare(None, "lublin-128-week", ["easy", "fcfs", "largest+easy", "conservative"])
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 1000},
    )
    page = shown(browser, tmp_path / "run.html", found.to_html)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    box, head, last, table = page.execute_script(
        "const box = document.querySelector('.beside-each-other'), row = box.querySelector('tbody tr');"
        "box.scrollLeft = 10000;"
        "return [box, row.firstChild, row.lastChild, box.firstChild].map((e) => e.getBoundingClientRect().toJSON())"
    )
    assert head["left"] >= box["left"] - 1  # its name stays
    assert head["width"] < box["width"] / 2
    assert last["right"] <= box["right"] + 1
    assert (table["width"] <= box["width"] + 1) == (width == 1400)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_lines_of_several_runs_are_means_of_a_few_pixels(browser: Any, tmp_path: Path) -> None:
    jobs = [Job(id=i, submit=2 * i, processors=4, run=1) for i in range(9000)]  # 4 processors busy half of the time
    found = compare(4, jobs, ["fcfs", "easy"])
    page = shown(browser, tmp_path / "run.html", found.to_html)
    heights = page.execute_script(
        "const chart = window.simmodelPage.charts.find((c) => c.panel.title === 'busy processors'), found = [];"
        "const pen = { beginPath() {}, stroke() {}, lineTo(x, y) { found.push(y / chart.plot); } };"
        "const line = chart.lines[0];"
        "chart.averages(pen, line, '#000', 0, line.times.length); return [chart.top, found]"
    )
    top, ys = heights
    assert len(ys) > 100
    means = [top * (1 - y) for y in ys]
    assert min(means) > 1.5
    assert max(means) < 2.5


def test_waits_are_marked_at_round_times(page: Any) -> None:
    texts = "[...document.querySelectorAll('[aria-label^=\"waits of\"] text')].map((e) => e.textContent)"
    marks = ["0 s", "1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d"]
    assert page.execute_script(f"return {texts}")[5:] == [*marks, "wait, logarithmic", "share of jobs"]


def test_the_name_of_a_processor_stands_at_its_row(browser: Any, tmp_path: Path) -> None:
    result = simulate("xeon-2s", Workflow([Task(id=number, run=5) for number in range(200)]), "heft")
    page = shown(browser, tmp_path / "run.html", result.to_html)
    drawn = page.execute_script(
        "const g = window.simmodelPage.gantts[0], found = [];"
        "g.label = (pen, text, y) => found.push([text, g.rowAt(y)]);"
        "g.draw(); return found"
    )
    rows = page.execute_script("return window.simmodelPage.gantts[0].labels")
    assert len(drawn) == len(rows) > 20
    assert all(name == next(each for low, high, each in rows if low <= row < high) for name, row in drawn)


def test_an_empty_picture_says_why(browser: Any, tmp_path: Path) -> None:
    jobs = [Job(id=number, submit=10 * number, run=10, processors=4) for number in range(12)]
    page = shown(browser, tmp_path / "none.html", simulate(2, jobs, "easy").to_html)
    said = page.execute_script("return [...document.querySelectorAll('.empty')].map((e) => e.textContent)")
    assert said == [
        "all 12 jobs were rejected: larger than the machine",
        "no processor was ever busy",
        "no job ever waited",
        "no job ended, so that there is no wait to show",
    ]
    assert page.execute_script("return document.querySelectorAll('canvas').length") == 0


def test_ticks_are_whole_where_the_quantity_is(browser: Any, tmp_path: Path) -> None:
    page = shown(browser, tmp_path / "one.html", simulate(2, [Job(id=1, run=10)], "easy").to_html)
    ticks = page.execute_script(
        "const found = []; window.simmodelPage.charts[1].names({ fillText: (text) => found.push(text) }); return found"
    )
    assert ticks == ["0", "1", "2"]  # the capacity is 2


def test_steps_are_drawn_as_steps(browser: Any, tmp_path: Path) -> None:
    jobs = [Job(id=number, run=90, processors=4 if number == 3 else 1) for number in range(4)]
    page = shown(browser, tmp_path / "few.html", simulate(4, jobs, "fcfs").to_html)
    path = page.execute_script("return document.querySelector('[aria-label^=\"waits of\"] path').getAttribute('d')")
    assert path == "M56.0,206.0H56.0V57.5H804.0V8.0H804"  # 0 to 75 % at once, and to 100 % at the longest wait
    rows = page.execute_script(
        "const last = [...document.querySelectorAll('.chart')].at(-1);"
        "return [...last.querySelectorAll('tbody tr')].map((e) => e.innerText)"
    )
    assert [row.split("\t") for row in rows][6:9] == [["60 %", "0 s"], ["70 %", "0 s"], ["80 %", "00:01:30"]]


def test_each_picture_has_a_name_and_a_table_behind_it(page: Any) -> None:
    pictures = page.execute_script(
        "return [...document.querySelectorAll('[role=img]')].map((e) => [e.getAttribute('aria-label'),"
        " !!e.closest('.chart').querySelector('details, table')])"
    )
    assert len(pictures) >= 4
    assert all(label and behind for label, behind in pictures)
    page.execute_script("document.querySelectorAll('.chart details').forEach((e) => { e.open = true })")
    settle(page)
    assert page.execute_script("return document.querySelectorAll('.behind tbody tr').length") > 200


def test_many_rectangles_are_drawn_as_the_share_they_cover(browser: Any, tmp_path: Path) -> None:
    result = simulate(None, "lublin:jobs=30000,processors=256", "easy", seed=1)
    page = shown(browser, tmp_path / "run.html", result.to_html)
    assert page.execute_script("return window.simmodelPage.gantts[0].exact") is False
    covered = page.execute_script(
        "const s = window.simmodelPage.gantts[0].sheet;"
        "const d = s.getContext('2d').getImageData(0, 0, s.width, s.height).data;"
        "let sum = 0; for (let i = 3; i < d.length; i += 4) sum += d[i] / 255; return sum / (s.width * s.height)"
    )
    used = result.busy().integral() / (256 * (result.ended - result.started))
    assert covered == pytest.approx(used, abs=0.02)
    page.execute_script("window.simmodelPage.look(0, 1e5); window.simmodelPage.drawAll()")
    assert page.execute_script("return window.simmodelPage.gantts[0].exact") is True


def test_hostile_names_are_shown_as_text(browser: Any, tmp_path: Path) -> None:
    names = [
        "</script><script>window.hit = 1</script>",
        '"><img src=x onerror="window.hit = 2">',
        "a\x00b",
        "\u202ecod.exe",
    ]
    jobs = [Job(id=name * 3, run=5, user=name) for name in names]
    result = simulate(4, jobs, "fcfs", name="<b onmouseover=window.hit=3>run</b>")
    page = shown(browser, tmp_path / "run.html", result.to_html)
    page.execute_script(
        "window.simmodelPage.pick(0, 'chart'); document.querySelectorAll('details').forEach((e) => { e.open = true })"
    )
    settle(page)
    assert page.execute_script("return window.hit") is None
    assert (
        page.execute_script("return document.querySelectorAll('img, b, script').length") == 2
    )  # its data and its script
    assert "␀" in page.execute_script("return document.body.textContent")


@pytest.mark.parametrize("kind", ["machine", "grid", "comparison"])
def test_the_other_pages_draw_themselves(browser: Any, tmp_path: Path, kind: str) -> None:
    write = {
        "machine": lambda path: simulate("hetsim-slow-setup", "layered:n=40,fat=0.5", "heft").to_html(path),
        "grid": lambda path: simulate("tiers-30", "tiers-30-day", "least-loaded", until=20_000).to_html(path),
        "comparison": lambda path: compare(None, "probe-4", ["fcfs", "easy"]).to_html(path),
    }[kind]
    browser.get_log("browser")
    page = shown(browser, tmp_path / "run.html", write)
    assert [line for line in page.get_log("browser") if line["level"] == "SEVERE"] == []
    boxes = page.execute_script("return window.simmodelPage.gantts.map((g) => g.row.length)")
    assert boxes[0] > 0
    if kind == "grid":  # a click on a site opens its schedule
        page.execute_script("const h = window.simmodelPage.charts[0]; h.click(h.margin + 5, h.plot * 0.5)")
        chosen = page.execute_script("return window.simmodelPage.gantts[0].which")
        assert chosen == 15


@pytest.fixture(scope="module")
def grid() -> tuple[Any, NetworkRecorder]:
    """A run of a grid, and the record of its links."""
    simulation = start("tiers-30", "tiers-30-day", "least-loaded", until=20_000)
    links = NetworkRecorder(simulation.system.data.network)
    simulation.env.observe(links)
    return simulation.run().result(), links


@pytest.fixture
def grid_page(browser: Any, grid: tuple[Any, NetworkRecorder], tmp_path: Path) -> Iterator[Any]:
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get_log("browser")
    yield shown(browser, tmp_path / "grid.html", lambda path: grid[0].to_html(path, links=grid[1]))
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []


def facts_of(browser: Any, panel: str) -> dict[str, str]:
    return dict(texts(browser, f"{panel} dl div"))


def texts(browser: Any, rows: str) -> list[list[str]]:
    """Return the texts of the parts of each element that is found."""
    script = "[...document.querySelectorAll(arguments[0])].map((e) => [...e.children].map((c) => c.textContent))"
    found: list[list[str]] = browser.execute_script(f"return {script}", rows)
    return found


def test_a_link_on_the_map_is_pointed_at_and_opened(grid_page: Any, grid: tuple[Any, NetworkRecorder]) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    picture = grid_page.find_element(By.CSS_SELECTOR, "svg.map")
    grid_page.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture)
    first = next(row for row in grid[1].links().rows() if row["link"] == "T0--T1-1")
    number = grid_page.execute_script(
        "return window.simmodelPage.maps[0].panel.links.findIndex((link) => link[0] === 'T0--T1-1')"
    )
    line = grid_page.find_elements(By.CSS_SELECTOR, ".map .hit")[number]
    ActionChains(grid_page).move_to_element(line).click().perform()
    text = grid_page.execute_script("return document.querySelector('.tip').textContent")
    assert text.startswith("link: T0--T1-1\nbetween: T0 – T1-1\n")
    assert f"moved: {first['bytes'] / 1e9:,.3f} GB" in text
    opened = facts_of(grid_page, ".details .of-map")
    mean = float(f"{100 * first['utilisation']:.3g}")
    assert opened["mean load"] == f"{mean:g} %"
    wide = "return window.simmodelPage.maps[0].links.map((e) => parseFloat(e.drawn.style.strokeWidth))"
    before = grid_page.execute_script(wide)
    grid_page.execute_script("window.simmodelPage.look(0, 100); window.simmodelPage.drawAll()")
    assert grid_page.execute_script(wide) != before  # the load is that of the time in view


def test_a_site_opens_with_its_hosts_and_its_queue(grid_page: Any, grid: tuple[Any, NetworkRecorder]) -> None:
    result, links = grid
    jobs = result.jobs
    site = "T1-1"
    grid_page.execute_script(f"window.simmodelPage.openSite('{site}')")
    here = jobs["site"] == site
    for share in (0.3, 0.9):
        at = result.started + share * (result.ended - result.started)
        grid_page.execute_script(
            "const page = window.simmodelPage, chart = page.gantts[0];"
            "Object.getPrototypeOf(chart.constructor).cursor = arguments[0]; page.markAll()",
            at,
        )
        facts = facts_of(grid_page, ".details .of-map")
        runs = here & (jobs["start"] <= at) & ~(jobs["end"] <= at)
        waits = here & (jobs["queued"] <= at) & ~(jobs["start"] <= at) & ~(jobs["end"] <= at)
        assert facts["running"] == str(runs.sum())
        assert facts["cores in use"] == str(jobs["processors"][runs].sum())
        assert facts["in its queue"] == str(waits.sum())
        used: dict[str, int] = {}
        for job, wide in zip(jobs["job"][runs].tolist(), jobs["processors"][runs].tolist(), strict=True):
            used[links.host(job)] = used.get(links.host(job), 0) + wide
        assert facts["cores in use by host"] == ", ".join(f"{host}: {used[host]}" for host in sorted(used))
    name = "return window.simmodelPage.gantts[0].panel.places[window.simmodelPage.gantts[0].which].name"
    assert grid_page.execute_script(name) == site


def test_a_job_is_found_by_its_id_with_its_files(grid_page: Any, grid: tuple[Any, NetworkRecorder]) -> None:
    files = grid[1].files()
    moved = next(row for row in files.rows() if str(row["way"]).startswith("from "))
    grid_page.execute_script("window.simmodelPage.rows.find(String(arguments[0]))", moved["job"])
    grid_page.execute_script("document.querySelector('tr[data-row]').click()")
    shown = texts(grid_page, ".details .picked tbody tr")
    own = [row for row in files.rows() if row["job"] == moved["job"]]
    assert [row[:2] for row in shown] == [[row["file"], row["way"]] for row in own]


def test_a_narrow_map_fits(grid_page: Any) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    grid_page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    grid_page.execute_script("window.simmodelPage.openSite('T1-1')")
    settle(grid_page)
    assert grid_page.execute_script("return document.documentElement.scrollWidth") <= 390
    grid_page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_run_that_is_killed_leaves_its_page(browser: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    code = (
        "from simmodel import Job, start\n"
        "simulation = start(8, [Job(id=i, submit=10 * i, run=35) for i in range(1000)], 'easy')\n"
        "with simulation.serve(refresh=0.05) as view:\n"
        "    view.act('pause'); print(view.url, flush=True); simulation.run()\n"
    )

    def wait(holds: str) -> None:
        WebDriverWait(browser, 60, 0.05).until(lambda driver: driver.execute_script(f"return {holds}"))

    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        browser.get(run.stdout.readline().strip())
        wait("window.simmodelPage?.table.columns[0].values.length === 1000")
        run.kill()
        wait("document.querySelector('.now').textContent.startsWith('the run is gone')")
    assert browser.execute_script("return window.simmodelPage.table.columns[0].values.length") == 1000
    browser.get_log("browser")


def test_a_run_draws_its_cores_and_its_queue_from_the_first_message_on(browser: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    simulation = start(8, [Job(id=i, processors=5, run=35) for i in range(30)], "easy", name="watched")
    simulation.run(until=40)
    with simulation.serve(refresh=0.1) as view:
        browser.get(view.url)
        assert "browser with scripts" not in browser.execute_script("return document.body.innerText")
        for waiting in (28, 27):
            view.publish(view.state())
            there = f"document.querySelector('#page')?.innerText.includes('{waiting}')"
            WebDriverWait(browser, 60, 0.05).until(lambda driver, there=there: driver.execute_script(f"return {there}"))
            simulation.run(until=simulation.env.now + 35)
        lines = browser.execute_script(
            "const lines = window.simmodelPage.charts.filter((e) => e.lines).map((e) => e.lines[0]);"
            "return lines.map((e) => [...e.times].map((at, i) => [at, e.values[i]]))"
        )
        record = simulation.result()
        for line, quantity in zip(lines, (record.busy(), record.queue_length()), strict=True):
            assert len(line) >= 3  # two messages, and the end between them
            assert all(value == quantity.at(at) for at, value in line)
        seen = "const g = window.simmodelPage.gantts[0]; return [...g.start].map((at, i) => [at, g.low[i], g.high[i]])"
        assert browser.execute_script(seen) == [[35, 0, 5], [70, 0, 5]]
        assert browser.execute_script("return document.querySelector('h1').textContent") == "watched"
        assert ["batch", "5", "8", "27"] in texts(browser, "#page tbody tr")
    browser.get_log("browser")


def test_a_run_is_watched_paused_stepped_and_seen_to_its_end(browser: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    jobs = [Job(id=f"job {i}", submit=10 * i, processors=1 + i % 5, run=35) for i in range(80)]
    simulation = start(8, jobs, "easy", name="watched")
    record = simulate(8, jobs, "easy")

    def wait(holds: Any) -> Any:
        return WebDriverWait(browser, 60, 0.05).until(lambda driver: driver.execute_script(f"return {holds}"))

    with simulation.serve(refresh=0.1) as view:
        view.act("pause")
        browser.get(view.url)
        thread = Thread(target=simulation.run)
        thread.start()
        wait("window.simmodelPage && window.simmodelLive && window.simmodelLive.paused")
        pause, step, *_ = browser.find_elements(By.CSS_SELECTOR, "#live button")
        for _ in range(8):
            beat = browser.execute_script("return window.simmodelLive.beat")
            step.click()
            wait(f"window.simmodelLive.paused && window.simmodelLive.beat > {beat}")
            now, used = browser.execute_script("return [window.simmodelLive.now, window.simmodelLive.used]")
            assert used == record.busy().at(now)
        wait(f"window.simmodelPage.head.span[1] === {now}")  # the whole page has caught up
        browser.execute_script("window.simmodelPage.rows.find('job 0')")
        assert browser.execute_script("return document.querySelector('tr[data-row] td').textContent") == "job 0"
        assert pause.text == "go on"
        pause.click()
        thread.join()
    wait("window.simmodelLive.over")
    assert browser.execute_script("return document.querySelector('#live b').textContent") == "ended"
    wait(f"window.simmodelPage.head.span[1] === {simulation.result().ended}")
    ends = browser.execute_script("return [...window.simmodelPage.table.columns.find((c) => c.name === 'end').values]")
    assert ends == record.jobs["end"].tolist()
    assert browser.execute_script("return window.simmodelPage.rows.input.value") == "job 0"  # what was looked for stays


def test_a_result_in_a_notebook_opens_its_page_at_a_click(browser: Any, week: Result, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    path = tmp_path / "cell.html"
    path.write_text(f"<!doctype html><meta charset='utf-8'><body>{week._repr_html_()}", "utf-8")
    browser.get(path.as_uri())
    frame = browser.find_element(By.TAG_NAME, "iframe")
    assert not frame.is_displayed()
    browser.find_element(By.TAG_NAME, "summary").click()
    browser.switch_to.frame(frame)
    try:
        WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(READY))
        settle(browser)
        height = "return window.simmodelPage.gantts[0].canvas.getBoundingClientRect().height"
        assert browser.execute_script(height) > 200
        assert len(browser.find_elements(By.CSS_SELECTOR, "tbody tr")) > 10
    finally:
        browser.switch_to.default_content()
