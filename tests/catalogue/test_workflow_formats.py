"""Workflow files: the format is detected from the content, and any file is read or rejected."""

import io
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from simmodel.catalogue import load_workflow
from simmodel.catalogue.formats import WORKFLOW_FORMATS
from simmodel.formats.daggen import read_daggen
from simmodel.formats.dax import read_dax
from simmodel.formats.sst import read_sst
from simmodel.formats.wfformat import read_wfformat
from simmodel.foundation.errors import InputError
from tests.helpers.workflow_documents import GOOD, TEXT, wfformat


def test_format_is_seen_from_content(tmp_path: Path) -> None:
    contents = {
        "dax": "<adag><job id='a' runtime='1'/></adag>",
        "daggen": TEXT,
        "wfformat": json.dumps(wfformat()),
        "sst": json.dumps({"tasks": [GOOD]}),
    }
    assert contents.keys() == WORKFLOW_FORMATS.keys(), "add an example of each new format to contents"
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        assert load_workflow(tmp_path / name).tasks == load_workflow(str(tmp_path / name), format=name).tasks


def test_what_is_no_workflow_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"must be a workflow in one of the formats dax, .*, got '{\"a\": 1}'"):
        load_workflow(path)
    with pytest.raises(InputError, match="no such file"):
        load_workflow(tmp_path / "none")
    with pytest.raises(InputError, match="must be a file, got a folder"):
        load_workflow(tmp_path)
    with pytest.raises(InputError, match="unknown format 'xml'"):
        load_workflow(path, format="xml")
    with pytest.raises(InputError, match=r"unknown option of the reader: .*'repair'"):
        load_workflow(path, format="sst", repair=True)


@given(
    st.one_of(
        st.text(max_size=60),
        st.text("<>/=\"'adgjobuses chilref123", max_size=60),
        st.text('digraph{}[]->;,="size 12\n', max_size=60),
        st.text("NODE 0123,-COMPUTATION\n", max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["tasks", "id", "workflow", "schemaVersion", "name"]), inner, max_size=4
                )
            ),
        ).map(json.dumps),
    )
)
def test_readers_read_or_refuse_whatever_comes(text: str) -> None:
    for read in (read_dax, read_daggen, read_wfformat, read_sst):
        with suppress(InputError):
            assert len(read(io.StringIO(text)))
