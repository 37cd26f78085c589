"""What holds for all people and whatever is said of them: it settles, and what is not said stays as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from answer_dialects import answer_dialect_values, possible
from hypothesis import assume, event, given
from hypothesis import strategies as st

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import SandboxProject
from lmsconf.model.calls import CallStatus

FIELDS: Final = (
    {"name": "Dept", "type": "CHOICE", "choices": ["A", "B", "C"]},
    {"name": "Skills / all", "type": "MULTI_SELECT", "choices": ["x", "y", "z"]},
    {"name": "Badge", "type": "TEXT"},
)
APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
KEYS: Final = {
    "first_name": ("firstName",),
    "last_name": ("lastName",),
    "language": ("language",),
    "admin": ("admin",),
    "manager": ("manager",),
    "applications": ("applicationIds",),
    "metadata": ("metadata",),
    "answers": ("customFields",),
    "archived": ("archivedAt",),
    "custom_archive_date": ("customArchiveDate",),
}
"""Manifest key → what the API says of it."""
Entry = dict[str, object]

_texts = st.sampled_from(["a", "b", "Åsa", "$(v)", "no", "1"])
_some = st.lists(st.sampled_from(APPLICATIONS), unique=True)
_answers = {
    "Dept": st.sampled_from(["A", "B", "C"]),
    "Skills / all": st.lists(st.sampled_from(["x", "y", "z"]), unique=True, min_size=1),
    "Badge": _texts,
}
_metadata = st.dictionaries(st.sampled_from(["k", "l", "cost centre"]), _texts)


def _maybe(**keys: st.SearchStrategy[object]) -> st.SearchStrategy[Entry]:
    return st.fixed_dictionaries({}, optional=keys)


_live = _maybe(
    first_name=_texts,
    last_name=_texts,
    language=st.sampled_from(["en", "sv"]),
    manager=st.booleans(),
    admin=st.booleans(),
    archived=st.booleans(),
    applications=_some,
    metadata=_metadata,
    answers=_maybe(**_answers),
)
_said = _maybe(
    first_name=_texts,
    last_name=_texts,
    language=st.sampled_from(["en", "sv"]),
    manager=st.booleans(),
    admin=st.booleans(),
    archived=st.booleans(),
    applications=_some | _some.map(lambda one: {"include": one[:1], "exclude": one[1:]}),
    metadata=st.dictionaries(st.sampled_from(["k", "l", "cost centre"]), _texts | st.none()),
    answers=_maybe(**{field: said | st.none() for field, said in _answers.items()}),
    custom_archive_date=st.none() | st.sampled_from(["2031-01-05", "2032-02-29T12:30:15+01:00"]),
)
_dialects = st.fixed_dictionaries(
    {
        **{key: st.sampled_from(values) for key, values in answer_dialect_values().items()},
        "users.update-metadata.mode": st.sampled_from(["replace", "merge"]),
    }
).map(possible)


class PeopleWorkspace(RandomWorkspace):
    """Three people of whom something may be said, one of whom nothing is, and two admins who keep the door open."""

    crowd: list[Entry]

    def seed(self) -> dict[str, object]:
        rest: list[Entry] = [{"email": "z@x.example", "id": "p9"}]
        rest += [{"email": f"root{n}@x.example", "id": f"r{n}", "admin": True} for n in range(2)]
        named = [{"email": f"p{n}@x.example", "id": f"p{n}", **said} for n, said in enumerate(self.crowd)]
        return {"custom_fields": list(FIELDS), "people": [*named, *rest]}


@tried(120)
@given(st.lists(_live, min_size=3, max_size=3), st.lists(_said, min_size=4, max_size=4), _dialects)
def test_what_is_said_of_people_settles(
    opened: Open, live: list[Entry], said: list[Entry], dialect: dict[str, str]
) -> None:
    """After an apply the next plan is empty; keys and people that the manifest leaves out are as they were."""
    world = PeopleWorkspace(dialect=dialect)
    world.crowd = live
    entries = [{"email": f"P{n}@x.example", **one} for n, one in enumerate(said)]
    entries[3] |= {"first_name": "N", "last_name": "Ew", "language": "sv", "archived": False}
    entries = [one for one in entries if not (one.get("archived") and one.get("admin"))]
    dated = [one for one in entries if one.get("custom_archive_date") is not None]
    assume(not any(one.get("admin") or one.get("manager") for one in dated))
    stage = opened((world, RandomManifests(sections={"users": entries}))).with_accounts()
    plan = stage.plan()
    refused = any(problem.is_error for problem in plan.all_problems)
    event("refused" if refused else "applied")
    assume(not refused)
    before = {id: _person(stage, id) for id in ("p0", "p1", "p2", "p9", "r0", "r1")}
    if plan.calls:
        report = stage.apply(plan)
        assert [str(one) for one in report.outcomes if one.status is not CallStatus.DONE] == []
        assert report.converged, report.residue
    assert stage.plan().changes == ()
    spoken = {str(entry["email"]).lower().partition("@")[0]: entry for entry in entries}
    for id, was in before.items():
        _stays(was, _person(stage, id), spoken.get(id, {}))


def _stays(was: Mapping[str, object], now: Mapping[str, object], entry: Entry) -> None:
    for key, names in KEYS.items():
        if key not in entry:
            for name in names:
                assert now.get(name) == was.get(name), (key, was, now)
    for key, name in (("metadata", "metadata"), ("answers", "customFields")):
        old, new = cast("dict[str, object]", was[name]), cast("dict[str, object]", now[name])
        for part in old.keys() - cast("dict[str, object]", entry.get(key, {})).keys():
            assert new[part] == old[part]


def _person(stage: SandboxProject, id: str) -> dict[str, object]:
    answer = stage.sandbox.answer("GET", f"/users/{id}", "", {"authorization": "Bearer sandbox"}, b"")
    return cast("dict[str, object]", json.loads(answer.body))
