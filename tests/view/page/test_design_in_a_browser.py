"""How pages look: colours that keep their meaning, contrast, details in view, names for screen readers, paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from simmodel import Job, compare, simulate, start
from simmodel.records import NetworkRecorder
from simmodel_site.twin.serving import plan_page
from tests.helpers.chromium import READY, settle, shown

pytestmark = pytest.mark.live

WIDE, NARROW = (1400, 1000), (390, 844)
STROKES = ("c0", "c1", "c2", "c3", "c4", "c5", "c6", "s0", "s1", "s2", "s3", "s4", "grey", "mark")
CONTRASTS = """
const parsed = (text) => {
  const n = text.match(/[\\d.]+/g).map(Number), unit = text.startsWith("color(") ? 255 : 1;
  return [...n.slice(0, 3).map((c) => unit * c), n.length < 4 ? 1 : n[3]];
};
const rough = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, box = node.parentElement;
  if (!node.textContent.trim() || !box.checkVisibility() || box.closest("script, noscript, :disabled")) continue;
  let ground = box;
  while (ground && parsed(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
  const style = getComputedStyle(box), ink = box.namespaceURI.endsWith("svg") ? style.fill : style.color;
  const behind = getComputedStyle(ground || document.body).backgroundColor;
  rough.push([node.textContent.slice(0, 40), parsed(ink), parsed(behind)]);
}
return rough;
"""
MARKED = "const g = window.simmodelPage.gantts[0]; let best = 0;" + (
    "for (let i = 0; i < g.row.length; i++) if (g.row[i] >= 0 && (g.end[i] - g.start[i]) * (g.high[i] - g.low[i]) >"
    " (g.end[best] - g.start[best]) * (g.high[best] - g.low[best])) best = i;"
)


def luminance(colour: list[float]) -> float:
    red, green, blue = (c / 3294 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(some: list[float], other: list[float]) -> float:
    low, high = sorted((luminance(some), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lightness(colour: list[float]) -> float:
    """Return L* of a colour, 0 to 100."""
    y = luminance(colour)
    return float(116 * y ** (1 / 3) - 16) if y > 0.008856 else 903.3 * y


def grid(path: Path) -> None:
    simulation = start("tiers-30", "tiers-30-day", "least-loaded", until=20_000)
    links = NetworkRecorder(simulation.system.data.network)
    simulation.env.observe(links)
    simulation.run().result().to_html(path, links=links)


def twin(path: Path) -> None:
    simulation = start(None, "lublin-128-week", "easy")
    simulation.run(until=380_000)
    path.write_text(plan_page("twin", simulation.system.snapshot()).html(), "utf-8")


PAGES = {
    "batch": lambda path: simulate(None, "lublin-128-week", "easy").to_html(path),
    "grid": grid,
    "machine": lambda path: simulate("hetsim-slow-setup", "layered:n=40,fat=0.5", "heft").to_html(path),
    "comparison": lambda path: compare(None, "lublin-128-week", ["fcfs", "easy"]).to_html(path),
    "twin": twin,
    "rejected": lambda path: simulate(2, [Job(id=1, run=10, processors=4)], "easy").to_html(path),
}


@pytest.fixture(scope="module", params=PAGES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    path = tmp_path_factory.mktemp("pages") / f"{request.param}.html"
    PAGES[request.param](path)
    return request.param, path


def look(browser: Any, path: Path, size: tuple[int, int], scheme: str) -> None:
    """Open a page in a window of this size, in light or dark, with all that is folded shown."""
    wide, tall = size
    metrics = {"width": wide, "height": tall, "deviceScaleFactor": 1, "mobile": wide < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    shown(browser, path, lambda _path: None)
    settle(browser)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    browser.get_log("browser")
    yield browser
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def unfold(browser: Any) -> None:
    browser.execute_script(
        "document.querySelectorAll('details').forEach((e) => { e.open = true });"
        "document.querySelectorAll('button[aria-expanded=false]').forEach((e) => e.click())"
    )
    settle(browser)


def pick(browser: Any) -> None:
    """Click on the largest rectangle."""
    browser.execute_script(
        f"{MARKED} g.canvas.scrollIntoView({{block: 'center'}});"
        "g.click((g.x(g.start[best]) + g.x(g.end[best])) / 2, (g.top(best) + g.bottom(best)) / 2)"
    )
    settle(browser)


def has_boxes(browser: Any) -> bool:
    return cast(bool, browser.execute_script("return window.simmodelPage.gantts.length > 0"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_all_text_is_read_on_its_ground(
    page: Any, written: tuple[str, Path], size: tuple[int, int], scheme: str
) -> None:
    look(page, written[1], size, scheme)
    unfold(page)
    if has_boxes(page):
        pick(page)
    found = page.execute_script(CONTRASTS)
    assert len(found) > 20
    assert [(text, round(contrast(ink, ground), 2)) for text, ink, ground in found if contrast(ink, ground) < 4.5] == []
    assert page.execute_script("return document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_keep_their_meaning(page: Any, tmp_path: Path, scheme: str) -> None:
    PAGES["batch"](tmp_path / "run.html")
    look(page, tmp_path / "run.html", WIDE, scheme)
    keys = page.execute_script(
        "return [...document.querySelector('.chart > .said').querySelectorAll('.key i')]"
        ".map((e) => getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number))"
    )
    assert len(keys) == 5  # the legend: no wait to the longest
    ground = page.execute_script(
        "return getComputedStyle(document.querySelector('.facts div')).backgroundColor.match(/[\\d.]+/g).map(Number)"
    )
    steps = [lightness(colour) for colour in (ground, *keys)]
    apart = [after - before for before, after in pairwise(steps)]
    assert all(abs(step) >= 10 for step in apart)
    assert all((step < 0) == (scheme == "light") for step in apart)  # the longest wait is the farthest from the ground
    inks = page.execute_script(
        "const of = getComputedStyle(document.documentElement);"
        "return arguments[0].map((e) => of.getPropertyValue(`--${e}`).trim())",
        list(STROKES),
    )
    for name, ink in zip(STROKES, inks, strict=True):
        colour = [float(int(ink[at : at + 2], 16)) for at in (1, 3, 5)]
        assert contrast(colour, ground) >= 3, name
    drawn = page.execute_script("const g = window.simmodelPage.gantts[0]; return [g.palette, g.letters]")
    for colour, letter in zip(*drawn, strict=True):
        assert contrast(colour, [255.0] * 3 if letter == "#fff" else [0.0] * 3) >= 4.5


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_details_of_a_click_are_in_view(page: Any, written: tuple[str, Path], size: tuple[int, int]) -> None:
    look(page, written[1], size, "light")
    if not has_boxes(page):
        return
    pick(page)
    box, inside, picture = page.execute_script(
        "const rect = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };"
        "return [rect(document.querySelector('.details')), rect(document.querySelector('.details h2')),"
        " rect(window.simmodelPage.gantts[0].canvas)]"
    )
    for left, top, right, bottom in (box, inside):
        assert 0 <= left < right <= size[0]
        assert 0 <= top < bottom <= size[1]
    if size == WIDE:
        assert picture[2] <= box[0]  # beside the picture, not over it
    else:
        assert picture[1] < box[1]  # below its top
    page.execute_script(
        "const key = new KeyboardEvent('keydown', {key: 'Escape', bubbles: true});"
        "document.querySelector('.details').dispatchEvent(key)"
    )
    assert page.execute_script("return document.querySelector('.details').hidden") is True


def test_an_outline_stays_off_the_axes(page: Any, tmp_path: Path) -> None:
    PAGES["machine"](tmp_path / "run.html")
    look(page, tmp_path / "run.html", WIDE, "light")
    pick(page)
    page.execute_script(
        f"{MARKED} window.simmodelPage.look(g.start[best] + 0.4 * (g.end[best] - g.start[best]), g.end[best] + 50);"
        "window.simmodelPage.drawAll()"
    )
    inked = page.execute_script(
        "const g = window.simmodelPage.gantts[0], ratio = devicePixelRatio || 1;"
        "const dots = (x, y, w, h) => g.over.getContext('2d').getImageData(x * ratio, y * ratio, w * ratio, h * ratio)"
        ".data.some((value) => value);"
        "return [dots(0, 0, g.margin - 1, g.height), dots(0, g.plot + 1, g.wide, g.height - g.plot - 1),"
        " dots(0, 0, g.wide, g.plot)]"
    )
    assert inked == [False, False, True]


def test_ids_stand_in_rectangles_that_have_room_and_neighbours_are_parted(page: Any, tmp_path: Path) -> None:
    jobs = [Job(id=f"job {number}", run=100, processors=2) for number in range(4)]
    simulate(4, jobs, "fcfs").to_html(tmp_path / "run.html")
    look(page, tmp_path / "run.html", WIDE, "light")
    drawn = page.execute_script(
        "const g = window.simmodelPage.gantts[0], text = [], boxes = [];"
        "g.boxes({ fillText: (each) => text.push(each), fillRect: (...each) => boxes.push(each), strokeRect() {},"
        " measureText: (each) => ({ width: 6 * each.length }) }); return [text, boxes]"
    )
    assert sorted(drawn[0]) == ["job 0", "job 1", "job 2", "job 3"]
    (left, low, right, high) = (min(e[0] for e in drawn[1]), min(e[1] for e in drawn[1]), 0, 0)
    corner = next(box for box in drawn[1] if box[:2] == [left, low])
    right = min(box[0] for box in drawn[1] if box[0] > left)
    high = min(box[1] for box in drawn[1] if box[1] > low)
    assert corner[0] + corner[2] <= right - 1
    assert corner[1] + corner[3] <= high - 1


def test_runs_of_a_comparison_stand_beside_each_other_on_one_scale(page: Any, tmp_path: Path) -> None:
    compare(None, "lublin-128-week", ["fcfs", "easy", "sjf+easy", "conservative"]).to_html(tmp_path / "run.html")
    look(page, tmp_path / "run.html", WIDE, "light")
    menus, chosen, legends, margins = page.execute_script(
        "const {gantts} = window.simmodelPage;"
        "return [gantts.map((g) => g.chooser.textContent.split(' ')[0]),"
        " gantts.map((g) => g.panel.places[g.which].name), gantts.map((g) => g.said.innerText.split('drag')[0].trim()),"
        " gantts.map((g) => [g.margin, g.inner])]"
    )
    assert menus == ["policy"] * 3
    assert chosen == ["fcfs", "easy", "sjf+easy"]
    assert len(set(legends)) == 1
    assert len({tuple(each) for each in margins}) == 1
    page.execute_script("window.simmodelPage.pick(200, 'chart')")
    found = "return window.simmodelPage.gantts.map((g) => [g.which, g.row.includes(200)])"
    assert page.execute_script(found) == [[0, True], [1, True], [2, True]]


NAMED = ("button", "combobox", "searchbox", "textbox", "image", "img", "link", "table", "region", "DisclosureTriangle")
NAMED += ("complementary", "heading", "columnheader", "rowheader", "Canvas", "canvas", "checkbox", "listbox", "option")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_part_has_a_name_for_screen_readers(page: Any, written: tuple[str, Path], size: tuple[int, int]) -> None:
    look(page, written[1], size, "light")
    unfold(page)
    if has_boxes(page):
        pick(page)
    tree = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    known = [node for node in tree if not node.get("ignored")]
    assert len(known) > 100
    nameless = [
        (node["role"]["value"], node.get("properties"))
        for node in known
        if not node.get("name", {}).get("value", "").strip()
        and (
            node["role"]["value"] in NAMED
            or any(each["name"] == "focusable" and each["value"]["value"] for each in node.get("properties", []))
        )
    ]
    assert nameless == []
    pictures = page.execute_script(
        "return [...document.querySelectorAll('canvas:not([aria-hidden]), svg')].map((e) => e.ariaLabel)"
    )
    assert all(pictures)


def test_paper_is_white_and_has_no_buttons(page: Any, tmp_path: Path) -> None:
    PAGES["batch"](tmp_path / "run.html")
    look(page, tmp_path / "run.html", WIDE, "dark")
    page.execute_script("dispatchEvent(new Event('beforeprint'))")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    settle(page)
    assert page.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    seen = "return [...document.querySelectorAll(arguments[0])].map((e) => e.checkVisibility())"
    assert not any(page.execute_script(seen, "button, select"))
    assert all(page.execute_script(seen, ".facts"))
    dot = page.execute_script(
        "const c = window.simmodelPage.charts[1], at = devicePixelRatio * (c.wide - 12);"
        "return [...c.canvas.getContext('2d').getImageData(at, 3, 1, 1).data]"
    )
    assert min(dot[:3]) > 200  # its ground is light
    page.execute_script("dispatchEvent(new Event('afterprint'))")
    assert page.execute_script("return document.documentElement.dataset.theme ?? 'auto'") == "auto"


def test_the_page_of_a_run_that_is_watched_has_axes_and_says_when_it_has_ended(page: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    simulation = start(8, [Job(id=number, submit=number, run=35) for number in range(300)], "easy", name="watched")
    with simulation.serve(refresh=0.1) as view:
        page.get(view.url)
        view.publish({**view.state()})
        WebDriverWait(page, 60, 0.05).until(lambda driver: driver.execute_script(READY))
        axes = page.execute_script("return window.simmodelPage.charts.map((e) => e.quantity)")
        assert axes == [] or axes[0] == "core"
        simulation.run()
    WebDriverWait(page, 60, 0.05).until(
        lambda driver: driver.execute_script("return document.querySelector('#live b').textContent === 'ended'")
    )
    WebDriverWait(page, 60, 0.05).until(
        lambda driver: driver.execute_script("return window.simmodelPage.table.columns[0].values.length === 300")
    )
    assert page.title == "ended: watched"
