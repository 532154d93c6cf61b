"""XML and JSON documents: errors name the place."""

import io

import pytest

from simmodel.formats.documents import read_json, read_xml
from simmodel.foundation.errors import InputError


def test_xml_without_a_root_gets_one() -> None:
    root, _ = read_xml(io.StringIO("<?xml version='1.0'?>\n<Pool id='1'/>\n<Link/>"), root="platform")
    assert [(each.tag, each.line) for each in root] == [("Pool", 2), ("Link", 3)]
    with pytest.raises(InputError, match="line 2: invalid XML: mismatched tag"):
        read_xml(io.StringIO("<a/>\n<b></c>"), root="platform")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('{"a": 1,\n "b" 2}', "line 2, column 6", "invalid JSON: Expecting ':' delimiter"),
        ('{"a": 1, "a": 2}', None, "duplicate key 'a'"),
        ('{"a": NaN}', None, "must be a finite number, got NaN"),
        ("[" * 100_000, None, "nested deeper than 100 levels"),
        ("1" * 5000, "line 1", "numbers of at most 300 digits"),
    ],
)
def test_wrong_json_is_refused(text, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_json(io.StringIO(text))
    assert (found.value.source, found.value.place) == ("an open file", place)
