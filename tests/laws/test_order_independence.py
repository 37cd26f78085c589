"""What holds for every order: neither that of files and entries nor that of rows in answers shows in a plan."""

from __future__ import annotations

import json
import re
from random import Random
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import Shuffled, document_of, yaml_text
from lmsconf.documents.plan_file import dumps

Both = tuple[RandomWorkspace, RandomManifests]
ORDERS = st.randoms(use_true_random=False)


@tried(80)
@given(wishes(), st.integers(0, 999))
def test_the_order_of_rows_does_not_show(opened: Open, both: Both, seed: int) -> None:
    """Plans of one workspace are byte-equal, in whatever order it lists its things and their people."""
    stage = opened(both)
    assert dumps(stage.seen_through(Shuffled(stage.sandbox, seed)).plan()) == dumps(stage.plan())


@tried(80)
@given(wishes(), ORDERS)
def test_the_order_of_files_and_entries_does_not_show(opened: Open, both: Both, order: Random) -> None:
    """Manifests spread over files and shuffled give the same plan, but for where it says that things stand."""
    stage = opened(both)
    before = document_of(stage.plan())
    stage.rewrite(_spread(both[1].document(), order))
    after = document_of(stage.plan())
    assert after["digest"] == before["digest"]
    assert _text(after) == _text(before)


def _spread(document: dict[str, object], order: Random) -> dict[str, str]:
    """The same entries in other files, in another order."""
    parts: dict[str, list[dict[str, object]]] = {"b.yaml": [], "a.yml": [], "deep é.yaml": []}
    for section, entries in document.items():
        absent = section == "absent"
        for key, items in (cast("dict[str, object]", entries) if absent else {section: entries}).items():
            mixed = list(cast("list[object]", items))
            order.shuffle(mixed)
            for item in mixed or [None]:
                part: dict[str, object] = {key: [] if item is None else [item]}
                parts[order.choice(list(parts))].append({"absent": part} if absent else part)
    for documents in parts.values():
        order.shuffle(documents)
    return {name: "---\n".join(map(yaml_text, documents)) for name, documents in parts.items()}


_PLACE = re.compile(r"manifests/[^:]*\.ya?ml:\d+:\d+")


def _text(document: dict[str, object]) -> str:
    """The plan without the places of its manifests."""
    lasting = {key: value for key, value in document.items() if key not in ("manifests", "seal")}
    return json.dumps(_placeless(lasting), sort_keys=True)


def _placeless(value: object) -> object:
    if isinstance(value, dict):
        return {key: _placeless(item) for key, item in value.items() if key != "source"}
    if isinstance(value, str):
        return _PLACE.sub("PLACE", value)
    return [_placeless(item) for item in value] if isinstance(value, list) else value
