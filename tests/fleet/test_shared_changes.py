"""Plans of five hundred workspaces, most of which need the same changes."""

from __future__ import annotations

from lmsconf.errors import ExitCode, Problem
from lmsconf.fleet.shared_changes import group_changes
from lmsconf.model.address import Address
from lmsconf.model.fleet import FleetAction, FleetEntry, FleetIndex, FleetReport
from lmsconf.model.plan import Action, Change, FieldChange
from lmsconf.render.markdown.fleet import fleet_markdown
from lmsconf.render.size_limit import parse_size_limit
from lmsconf.render.text.fleet import fleet_text

NAMES = [f"site-{number:03}" for number in range(500)]


def change(name: str, *, added: str, id: str) -> Change:
    field = FieldChange(path="choices", added=(added,))
    address = Address.of("custom_field", name)
    return Change(
        address=address,
        action=Action.UPDATE,
        id=id,  # type: ignore[arg-type]  # a RemoteId is a text
        about=None,
        source=None,
        before={"name": name},
        after={"name": name},
        fields=(field,),
    )


def report() -> FleetReport:
    """412 workspaces with the same three changes, 20 with one of their own, 3 that cannot be reached, 65 with none."""
    plans = {name: tuple(change(f"Field {n}", added="A", id=f"{name}-{n}") for n in range(3)) for name in NAMES[:412]}
    plans |= {name: (change(f"Field of {name}", added="B", id=name),) for name in NAMES[412:432]}
    entries = []
    for name in NAMES:
        failed = name in NAMES[432:435]
        lost = Problem(code="api/unreachable", message=f"https://{name}.example/api cannot be reached")
        entries.append(
            FleetEntry(
                workspace=name,
                url=f"https://{name}.example/api",
                labels={},
                exit=ExitCode.UNREACHABLE if failed else ExitCode.CHANGES if name in plans else ExitCode.OK,
                summary={"update": len(plans.get(name, ()))},
                problems=(lost,) if failed else (),
            )
        )
    index = FleetIndex(action=FleetAction.PLAN, created_at="2026-06-01T00:00:00Z", entries=tuple(entries))
    return FleetReport(index=index, shared=group_changes(plans.items()))


def test_what_many_share_is_said_once() -> None:
    """Ids differ and do not count; changes that differ in a name alone are one list; failures alike are one."""
    text = fleet_text(report())
    assert text.startswith("500 workspaces: 432 with changes, 65 without, 3 failed.\n\n3 workspaces alike, site-432, ")
    assert "These 3 changes in 412 of 500 workspaces: site-000, site-001, site-002, " in text
    assert "These 20 changes, one in each of 20 of 500 workspaces, equal but for their names:\n" in text
    assert text.count("will be changed") == 4


def test_it_fits_a_comment() -> None:
    """The Markdown is complete within the size of a comment on GitHub, with failures first."""
    comment = fleet_markdown(report(), limit=parse_size_limit("github"))
    assert len(comment.encode()) < 10_000
    assert "Shortened" not in comment
    assert comment.index("cannot be reached") < comment.index("These 3 changes in 412 of 500 workspaces")
    assert all(f"site-{number}" in comment for number in range(412, 432))
