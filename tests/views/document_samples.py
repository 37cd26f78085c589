"""Plans and reports that show every form a view must word: the documents of tests/golden, read back.

A form that is new is written into one of the JSON files by hand; `--update-golden` then renews its digest and seal.
"""

import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lmsconf.documents import plan_file, reports
from lmsconf.documents.json_documents import parse_document
from lmsconf.errors import SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import PersonEffect
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Action, Change, Plan

GOLDEN = Path(__file__).parent.parent / "golden"
HASH = "5f" * 32
DEPARTMENT = Address.of("custom_field", "Department")
COACHES = Address.of("group", "Onboarding coaches")
NORDICS = Address.of("smart_group", "Sales Nordics")
BASICS = Address("content_target", f"GDPR basics -> {NORDICS}")
EVIL = "\x1b[31mred\x07\u202egnp.exe\u2028\r\n::error::pwned ##[set-env] /\\ -> <b>@all</b> | `x` \x9b2J\ud800"
"""The name of everything in the hostile samples."""


def golden_document(name: str) -> dict[str, Json]:
    """A JSON document of tests/golden, where its seal and the tool that wrote it are hidden."""
    text = (GOLDEN / f"{name}.json").read_bytes().decode()
    return parse_document(re.sub(r'^  "(tool|seal)": …,?$', r'  "\1": "",', text, flags=re.MULTILINE))


# Digests and seals are not looked at: a key that is new in the format does not keep the samples from being read.
PLANS: dict[str, Plan] = {
    name: plan_file._plan(golden_document(f"plan_{name}"))
    for name in (
        *("rehearsed", "rehearsed_hostile", "empty", "create", "update", "delete", "mixed"),
        *("people", "people_unknown", "people_off", "hostile"),
    )
}
REPORTS: dict[str, ApplyReport] = {
    name: reports._apply_report(golden_document(f"apply_{name}"))
    for name in ("complete", "partial", "stopped", "diverged", "doubled", "unread", "lost", "touched", "edited")
}
EMPTY, CREATE, UPDATE, DELETE = (PLANS[name] for name in ("empty", "create", "update", "delete"))
MIXED, PEOPLE, HOSTILE = PLANS["mixed"], PLANS["people"], PLANS["hostile"]
COMPLETE = REPORTS["complete"]


def change(address: Address, action: Action, line: int | None = None, **more: Any) -> Change:
    """A change that says nothing but that, and what else is given."""
    source = None if line is None else SourceLocation("manifests/people.yaml", line, 5)
    nothing = {"id": None, "about": None, "before": None, "after": None, "fields": ()}
    return Change(address=address, action=action, source=source, **{**nothing, **more})


# Effects on people: those of the plan that has every form, and others made beside them.


LOSSES = PEOPLE.effects
CONTENTS = LOSSES.contents
ROW = PersonEffect(
    email="canary@acme.example",
    content="GDPR basics",
    content_id=CONTENTS[0].id,
    change="lose",
    before="mandatory",
    after="none",
    from_before="2026-01-01T00:00:00Z",
    until_before=None,
    from_after=None,
    until_after=None,
    shortened=False,
    causes=(str(NORDICS), str(BASICS)),
)
"""A row of `--people`."""
NAMES = tuple(
    replace(ROW, email=f"p{number:02}@acme.example", content=("GDPR basics", "Fire safety")[number % 2])
    for number in range(30)
)
