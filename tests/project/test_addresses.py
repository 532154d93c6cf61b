"""Every page and heading of the site of 0.2 is there, or docs/moved.toml says where its content went."""

from __future__ import annotations

import tomllib

import pytest

from tests.helpers.doc_pages import PAGES
from tests.helpers.paths import ROOT

OLD = [line for line in (ROOT / "tests/project/anchors_0_2.txt").read_text("utf-8").split("\n") if line[:1] not in "#"]
MOVED: dict[str, str] = tomllib.loads((ROOT / "docs/moved.toml").read_text("utf-8"))


def exists(address: str) -> bool:
    name, _, anchor = address.partition("#")
    page = PAGES.get(f"{name}.md")
    return page is not None and (not anchor or anchor in page.anchors)


def leads_to(address: str) -> str:
    """Return where an old address leads: by its own line, or by that of its page with the same anchor."""
    name, _, anchor = address.partition("#")
    if address in MOVED:
        return MOVED[address]
    at = MOVED.get(name, name).partition("#")[0]
    return f"{at}#{anchor}" if anchor else MOVED.get(name, name)


@pytest.mark.parametrize("address", [address for address in OLD if address])
def test_no_address_of_the_site_of_0_2_is_dead(address: str) -> None:
    assert exists(address) or exists(leads_to(address)), leads_to(address)


@pytest.mark.parametrize("old", MOVED)
def test_each_line_leads_from_an_address_that_is_gone_to_one_that_exists(old: str) -> None:
    assert exists(MOVED[old]), MOVED[old]
    assert not exists(old), f"{old} is there: the line hides it"
