"""Documents and answers are read strictly: a value of another type is refused, never taken as it is."""

from __future__ import annotations

import json

import pytest

from lmsconf.documents import problems_file, snapshot_file
from lmsconf.documents.document import JsonObjectReader, render_json
from lmsconf.errors import InvalidResponse, LmsconfError, Problem, StalePlan
from lmsconf.kinds.shared.response_json import object_list
from lmsconf.model.snapshot import Snapshot

FORMAT = json.loads(problems_file.dumps([Problem(code="a/b", message="m")]))["format"]


def test_a_list_of_texts_holds_nothing_else() -> None:
    """A number among texts is an error."""
    assert JsonObjectReader({"a": ["x"]}).texts("a") == ("x",)
    with pytest.raises(ValueError, match="a text is missing"):
        JsonObjectReader({"a": ["x", 1]}).texts("a")


def test_problems_of_another_format_are_refused() -> None:
    """A document that is no list of problems says so, whatever else is in it."""
    written = json.loads(problems_file.dumps([Problem(code="a/b", message="m")]))
    assert [one.code for one in problems_file.loads(json.dumps(written))] == ["a/b"]
    with pytest.raises(LmsconfError):
        problems_file.loads(json.dumps({**written, "format": "lmsconf.other/1"}))


def test_problems_that_were_edited_are_refused() -> None:
    """A problem without its parts is no problem that lmsconf wrote."""
    with pytest.raises(StalePlan):
        problems_file.loads(render_json({"format": FORMAT, "problems": [{"code": 1}]}))


def test_a_snapshot_of_another_format_is_refused() -> None:
    """By its format, also where everything else fits: a later version may mean something else by it."""
    written = json.loads(snapshot_file.dumps(Snapshot(workspace="w", url="u", taken_at="t", people=None)))
    assert snapshot_file.loads(json.dumps(written)).workspace == "w"
    with pytest.raises(LmsconfError, match=r"is a lmsconf\.snapshot/2 document, not a lmsconf\.snapshot/1"):
        snapshot_file.loads(json.dumps({**written, "format": "lmsconf.snapshot/2"}))


def test_an_answer_with_a_text_where_an_object_should_be_is_refused() -> None:
    """The error says where."""
    with pytest.raises(InvalidResponse, match="an item of choices"):
        object_list({"choices": ["x"]}, "choices")
