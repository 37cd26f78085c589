"""Plans of five hundred workspaces, most of which need the same changes."""

from __future__ import annotations

from fleet.fleet_samples import large_fleet
from lmsconf.render.fleet_report import fleet_text
from lmsconf.render.markdown import fleet_markdown
from lmsconf.render.size_limit import parse_size_limit


def test_what_many_share_is_said_once() -> None:
    """Ids differ and do not count; changes that differ in a name alone are one list; failures alike are one."""
    text = fleet_text(large_fleet())
    assert text.startswith(
        "500 workspaces: 432 with changes, 65 without, 3 failed.\n\n"
        "3 workspaces: unreachable or timed out\n  site-432, site-433, site-434\n  error: "
    )
    assert "These 3 changes in 412 of 500 workspaces: site-000, site-001, site-002, " in text
    assert "These 20 changes, one in each of 20 of 500 workspaces, equal but for their names:\n" in text
    assert text.count("will be changed") == 4


def test_it_fits_a_comment() -> None:
    """The Markdown is complete within the size of a comment on GitHub, failures first, and names every workspace."""
    comment = fleet_markdown(large_fleet(), limit=parse_size_limit("github"))
    assert len(comment.encode()) < 10_000
    assert "Shortened" not in comment
    assert comment.index("cannot be reached") < comment.index("#### These 3 changes in 412 of 500 workspaces\n")
    assert all(f"`site-{number:03}`" in comment for number in range(435))
    assert "\\\\" not in comment  # nothing is escaped twice


def test_changes_come_before_long_lists_of_workspaces() -> None:
    """In a small comment of a large fleet, all changes are in full, and the first workspaces stand for the others."""
    comment = fleet_markdown(large_fleet(5_000, 4_900, 60), limit=parse_size_limit("20000"))
    assert len(comment.encode()) <= 20_000
    assert comment.count("choices: 1 added") == 4
    assert "`site-009`, … and 4,890 more\n" in comment
    assert "Shortened to fit 20,000 bytes" in comment
