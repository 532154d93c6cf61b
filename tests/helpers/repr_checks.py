"""What the texts of values look like, in a console and in a notebook."""

import html.parser
from typing import Any

__all__ = ["one_line_and_a_small_table"]


class Tags(html.parser.HTMLParser):
    """Collects the tags of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def one_line_and_a_small_table(name: str, value: Any) -> None:
    """Check the texts of a value of the class of a name, in a console and in a notebook."""
    text = repr(value)
    assert "\n" not in text
    assert 0 < len(text) <= 250, text
    assert " object at 0x" not in text.replace("<function", "")
    assert type(value).__name__ in text or name.endswith("Plots"), text
    shown = value._repr_html_()
    tags = Tags()
    tags.feed(shown)
    assert not [tag for tag in tags.open if tag not in ("rect", "polygon")], "every tag is closed"
    assert "b" not in tags.tags[2:] or name in ("BrokerResult",) or tags.tags.count("b") == 1, "names are escaped"
    assert tags.tags.count("tr") <= 60
