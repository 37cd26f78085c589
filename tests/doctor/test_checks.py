"""`lmsconf doctor` without --probe: what it finds, that it only reads; dialect keys put into a project file."""

import base64
import json
import platform
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifest.cases import Case, cases

from lmsconf import __version__
from lmsconf.api.client import Exchange
from lmsconf.doctor.checks import ClockSkewCheck, ListingPageSize, check_page_size, check_token_expiry
from lmsconf.doctor.probe_run import set_dialect_keys
from lmsconf.errors import LmsconfError
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript

from .clinic import SEED, Clinic, Open, unchanged

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def checks(clinic: Clinic) -> dict[str, tuple[str, str]]:
    """Check → health and message."""
    return {one["check"]: (one["health"], one["message"]) for one in clinic.report()["checks"]}


def test_a_healthy_workspace(clinic: Clinic) -> None:
    """All checks of a sound workspace, and not one request that writes."""
    with unchanged(clinic):
        found = checks(clinic)
        assert found["connection"] == ("ok", "the service responds and accepts the token for reading")
        assert found["clock"][0] == "ok"
        assert found["pages"] == ("unknown", "no listing is longer than a page, so the largest page size is not known")
        assert found["fields"] == ("ok", "1 of 10 custom fields are used")
        assert found["names"] == ("ok", "no duplicate names within a kind")
        assert found["manifests"] == ("ok", "4 resources are declared")
        assert found["versions"][1].startswith(f"lmsconf {__version__}, Python {platform.python_version()}, httpx 0.")
        assert not any(one.writes for one in clinic.sandbox.log)


def test_assumptions_say_where_they_come_from(clinic: Clinic) -> None:
    """Each key that the manifests rely on is listed: as assumed, or as known, with the place of the project's word."""
    known = "dialect:\n  manual-groups.rename.name: newName\n  manual-groups.add.mode: add\n"
    clinic.declare("groups: [{name: Coaches, members: []}]\n", known)
    out = clinic("doctor", code=0).out
    assert "Known, because the project file states it, and relied on by the manifests: 2\n" in out
    assert "  manual-groups.add.mode: add (lmsconf.yaml:7:3)\n" in out
    assert "Before the first apply, try what is assumed: lmsconf doctor --probe" in out
    told = clinic.report()["assumptions"]
    assert {one["key"] for one in told if one["known"]} == {"manual-groups.rename.name", "manual-groups.add.mode"}
    assert [one["key"] for one in told if one["overridden"]] == ["manual-groups.rename.name"]
    assert "  manual-groups.rename.name: newName (lmsconf.yaml:6:3, instead of name)" in out
    assert "  manual-groups.add-members.userIds: userIds (default)" in out
    assert "custom-fields.in-use" not in out


@pytest.mark.parametrize(("rows", "most"), [(99, None), (100, None), (101, 40), (250, 40)])
def test_a_smaller_page_is_named(open_clinic: Open, rows: int, most: int | None) -> None:
    """A service that gives less than was asked for, although there is more, is told by the dialect key."""
    people = [{"email": f"p{number}@acme.example"} for number in range(rows)]
    more = {key: [] for key in SEED if key != "content"} | {"people": people}
    out = open_clinic({"paging.limit": most or 100}, more)("doctor", code=0).out
    assert ("Set under `dialect:` paging.limit: 40" in out) is (most is not None)
    assert ("users.list: whole pages of 100" in out) is (rows == 100)


def test_names_that_are_live_twice(open_clinic: Open) -> None:
    """A name that two things of a kind have is told with their ids; two kinds may share one."""
    clinic = open_clinic(more={"content": [{"name": "Same"}, {"name": "Same"}, {"name": "GDPR basics"}]})
    for name in ("Twin", "Twin", "Same"):
        clinic.hand("manual-groups.create", body={"name": name})
    told = "group/Twin is live 2 times: g-2, g-3; content/Same is live 2 times: c-1, c-2"
    assert checks(clinic)["names"] == ("warning", told)


def test_ten_fields_are_all_there_can_be(open_clinic: Open) -> None:
    """The tenth field of ten is worth a warning."""
    more = ({"name": f"Field {number}", "type": "TEXT"} for number in range(9))
    clinic = open_clinic(more={"custom_fields": [*SEED["custom_fields"], *more]})
    assert checks(clinic)["fields"] == ("warning", "10 of 10 custom fields are used")


def test_a_refused_credential(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused token is exit 7, in a report that never shows it; nothing more is asked, and nothing probed."""
    monkeypatch.setenv("LMSCONF_TOKEN", "s3cr3t-token")
    ran = clinic.probed(code=7)
    assert "error     connection: GET /users" in ran.out
    assert "s3cr3t" not in ran.told
    assert len(clinic.sandbox.log) == 1


def test_an_unreachable_service(open_clinic: Open) -> None:
    """A service that is down is exit 8, and what can be told without it is told."""
    clinic = open_clinic(faults=FaultScript(Fault(status=503, headers={"retry-after": "0"}, times=ALWAYS)))
    out = clinic("doctor", code=8).out
    assert "error     connection: " in out
    assert "manual-groups.rename.name: name (default)" in out


def test_broken_manifests_are_said(clinic: Clinic) -> None:
    """The workspace is looked at although the manifests have errors."""
    clinic.declare("groups: [{nam: Coaches}]\n")
    found = checks(clinic)
    assert (found["manifests"][0], found["connection"][0]) == ("warning", "ok")


def jwt(claims: object) -> str:
    """A token with these claims, and a signature that nobody looks at."""
    parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in ({"alg": "x"}, claims)]
    return ".".join([*parts, "c2lnbmF0dXJl"])


def after(**time: int) -> float:
    """So much later than now, as a claim."""
    return (NOW + timedelta(**time)).timestamp()


@pytest.mark.parametrize(
    ("claims", "health", "message"),
    [
        ({"exp": after(days=90)}, "ok", "it expires in 90 days, at 2026-08-30 12:00 UTC"),
        ({"exp": after(days=13)}, "warning", "it expires in 13 days, at 2026-06-14 12:00 UTC"),
        ({"exp": after(days=1)}, "warning", "it expires in 1 day, at 2026-06-02 12:00 UTC"),
        ({"exp": after(hours=1)}, "warning", "it expires in less than a day, at 2026-06-01 13:00 UTC"),
        ({"exp": after()}, "error", "it expired at 2026-06-01 12:00 UTC"),
        ({"sub": "x"}, "ok", "the token has no expiry claim"),
    ],
)
def test_the_end_of_a_token(claims: object, health: str, message: str) -> None:
    """The claim `exp` says until when a token is good."""
    found = check_token_expiry(jwt(claims), NOW)
    assert (found.health, found.message) == (health, message)


@pytest.mark.parametrize(
    "token",
    ["s3cr3t", "s3cr3t.s3cr3t.s3cr3t", "a.!!.c", jwt(["s3cr3t"]), jwt({"exp": "s3cr3t"}), jwt({"exp": True}),
     jwt({"exp": 1e30}), "a.bnVsbA.c", "å.å.å"],
)  # fmt: skip
def test_an_unreadable_token_is_said_and_not_shown(token: str) -> None:
    """What is no JSON Web Token, or names no instant, has an unknown end; none of it is repeated."""
    found = check_token_expiry(token, NOW)
    assert found.health == "unknown"
    assert "s3cr3t" not in str(found)


@pytest.mark.parametrize(
    ("dates", "health", "message"),
    [
        (["Mon, 01 Jun 2026 12:00:00 GMT"], "ok", "within 1 s of the service's"),
        (["Mon, 01 Jun 2026 12:02:00 GMT"], "warning", "this machine is 120 s behind the service"),
        (["Mon, 01 Jun 2026 11:00:00 GMT"], "warning", "this machine is 3,600 s ahead of the service"),
        (["Mon, 01 Jun 2026 11:50:00 GMT", "Mon, 01 Jun 2026 12:00:01 GMT"], "ok", "within 2 s of the service's"),
        ([None, "soon"], "unknown", "the responses of the service have no Date header"),
    ],
)
def test_the_two_clocks(dates: list[str | None], health: str, message: str) -> None:
    """The Date of the answers tells how far the clocks are apart; the least delayed answer counts."""
    watch = ClockSkewCheck(lambda: NOW)
    seen = {"operation": "users.list", "method": "GET", "path": "/users", "query": ""}
    for date in dates:
        watch.record_date(Exchange(**seen, attempt=1, seconds=0.1, status=200, date=date))
    found = watch.finding()
    assert (found.health, found.message) == (health, message)


# Dialect keys put into a project file: what stood there stays as it stood.


WORKSPACES = "workspaces:\n  production: {url: 'https://lms.example'}\n"
FOUND: dict[str, str | int] = {"a.name": "newName", "paging.limit": 50}


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("dialect_keys.txt")), ids=lambda case: case.title)
def test_keys_are_put_beside_what_is_there(case: Case) -> None:
    """Comments, order and quotes stay; only the values that are wanted are new."""
    assert set_dialect_keys(case.text, FOUND, "production") == case.told


def test_keys_are_put_at_the_end_of_a_file_without_any() -> None:
    """Also where its last line has no line break; line ends stay as they are."""
    added = "dialect:\n  a.name: newName\n  paging.limit: 50\n"
    assert set_dialect_keys(f"{WORKSPACES}timezone: UTC   # last", FOUND, "production") == (
        f"{WORKSPACES}timezone: UTC   # last\n{added}"
    )
    windows, wanted = (text.replace("\n", "\r\n") for text in (WORKSPACES, WORKSPACES + added))
    assert set_dialect_keys(windows, FOUND, "production") == wanted


@pytest.mark.parametrize("value", ["null", "true", "no", "7", "1e3", "a: b", "", "é", "~", "it's", 'say "x"', "# no"])
def test_values_mean_what_they_are(value: str) -> None:
    """A text that YAML would take for something else is quoted."""
    (document,) = read_yaml("", set_dialect_keys(WORKSPACES, {"a.name": value}, "production")).documents
    assert document.value["dialect"] == {"a.name": value}


@pytest.mark.parametrize(
    "text",
    [
        "{workspaces: {production: {url: 'https://lms.example'}}}\n",
        f"{WORKSPACES}...\n",
        f"x-shared: &shared {{b.name: x}}\ndialect: *shared\n{WORKSPACES}",
        f"dialect:\n{WORKSPACES}",
    ],
)
def test_what_cannot_be_edited_safely_is_left(text: str) -> None:
    """A layout in which the new text would mean something else is refused, with the lines to paste."""
    with pytest.raises(LmsconfError) as refused:
        set_dialect_keys(text, FOUND, "production")
    assert refused.value.hint == "Add this to it:\ndialect:\n  a.name: newName\n  paging.limit: 50"


KEYS = st.sampled_from(["a.name", "b.name", "c-d.name", "paging.limit"])
WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=8)


@given(st.dictionaries(KEYS, WORDS), st.dictionaries(KEYS, WORDS, min_size=1), st.booleans())
def test_any_keys_beside_any_others(old: dict[str, str], new: dict[str, str], flow: bool) -> None:
    """Whatever stood under `dialect:`, afterwards it says the old and the new, and nothing else is touched."""
    pairs = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in old.items()]
    section = f"dialect: {{{', '.join(pairs)}}}  # c\n" if flow else "\n  ".join(["dialect:  # c", *pairs]) + "\n"
    text = (section if old or flow else "") + WORKSPACES
    edited = set_dialect_keys(text, new, "production")
    (document,) = read_yaml("", edited).documents
    assert document.value["dialect"] == {**old, **new}
    assert edited.replace(WORKSPACES, "") != edited
    assert ("# c" in edited) is ("# c" in text)


def test_the_smallest_page_is_advised() -> None:
    """Of listings that give pages of several sizes, the one that all of them give."""
    limits = [ListingPageSize("users.list", 100, 50), ListingPageSize("catalog.list", 100, 25, refused=True)]
    found = check_page_size(limits)
    assert (found.health, found.hint) == ("error", "Set under `dialect:` paging.limit: 25")
