"""`lmsconf audience --by`: how many people of an audience picked a choice that the plan adds or deletes."""

from __future__ import annotations

import json
from pathlib import Path

from .project import Project
from .shell import lmsconf

SEED = """
people: [{email: ann@acme.example, answers: {Country: SE}}, {email: bo@acme.example, answers: {Country: FI}}]
custom_fields: [{name: Country, type: CHOICE, choices: [SE, FI]}]
"""
MANIFESTS = """
custom_fields: [{name: Country, choices: [SE, NO]}]
users: [{email: bo@acme.example, answers: {Country: NO}}]
"""


def test_nobody_has_a_choice_where_it_does_not_exist(tmp_path: Path) -> None:
    """A choice that the plan adds was picked by nobody before it, and one that it deletes by nobody after it."""
    Project(tmp_path, SEED).write(MANIFESTS)
    ran = lmsconf(tmp_path, "audience", "everyone", "--by", "Country", "--format", "json")
    assert ran.code == 0, ran.err
    counted = {one["choice"]: (one["before"], one["after"]) for one in json.loads(ran.out)["answers"]}
    assert counted == {"SE": (1, 1), "FI": (1, 0), "NO": (0, 1)}
