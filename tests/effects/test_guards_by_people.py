"""No way round the guard by people within one plan: whatever takes content away, stops until that number is allowed."""

from pathlib import Path

import pytest
from flow.shell import lmsconf
from manifest.cases import Case, cases
from texts import text_of

from effects.crowd import QUIET, applied, document, filled, guard, project, seen
from effects.evaluator import evaluate, seconds
from lmsconf.errors import ExitCode

pytestmark = pytest.mark.sampled  # some seconds in all

ALL = 62
WAYS = cases(Path(__file__).with_name("ways.txt"))
"""Manifests, and the consent that they need: to so many people who lose content or must have it, or none."""
LOSING, BINDING, HARMLESS = (
    [case for case in WAYS if case.told.startswith(word)] for word in ("people", "mandatory", "nothing")
)


@pytest.mark.parametrize("case", LOSING, ids=lambda case: case.title)
def test_taking_content_away_stops_until_that_number_is_allowed(tmp_path: Path, case: Case) -> None:
    """Apply exits 4, sends nothing and prints the line; another number stops too; the exact one applies.

    Each way tries one of three other numbers. `--no-effects` is no way round: the number is not known then, and only
    the consent to an unknown one would pass. A saved plan is consent to its calls, and not to that number.
    """
    allowed, *more = case.told.split()
    number = int(allowed.partition("=")[2])
    it = project(tmp_path, case.text)
    before, rows = seen(it), it.rows()
    for consents, options, line in (
        ([], more, allowed),
        ([f"people={(number - 1, number + 1, 'unknown')[LOSING.index(case) % 3]}"], more, allowed),
        ([], [*more, "--no-effects"], "people=unknown"),
        ([allowed], [*more, "--no-effects"], "people=unknown"),
    ):
        stopped = applied(it, *consents, more=tuple(options))
        assert (stopped.code, f"--allow {line}\n" in f"{stopped.err}\n") == (ExitCode.BLOCKED, True), stopped
    unknown, plan = document(it, *more, "--no-effects"), document(it, *more, "--out", "plan.json")
    assert (unknown["effects"]["basis"], guard(unknown)["total"]) == ("off", None)
    assert (guard(plan)["total"], guard(plan)["tripped"]) == (number, True)
    assert lmsconf(tmp_path, "apply", "plan.json", "--allow", f"people={number + 1}").code == ExitCode.BLOCKED
    assert it.rows() == rows
    others = [word for one in plan["guards"] if one["tripped"] for word in ("--allow", one["allow"])]
    assert lmsconf(tmp_path, "apply", "plan.json", *others).code == ExitCode.OK
    assert evaluate(before, seen(it), seconds(plan["created_at"]) or 0).losing == number


@pytest.mark.parametrize(("audience", "number", "stops"), [("everyone", ALL, True), ("{group: Team}", 30, False)])
def test_what_becomes_mandatory_for_most_people_stops(tmp_path: Path, audience: str, number: int, stops: bool) -> None:
    """Half of all people is the limit; those who gain it count as those who had it as optional do."""
    it = project(tmp_path, f"content_targets: [{{content: Safety, mandatory: true, assign_to: [{audience}]}}]")
    assert guard(document(it), "mandatory")["total"] == number
    assert applied(it, f"mandatory={number + 1}").code == (ExitCode.BLOCKED if stops else ExitCode.OK)
    assert applied(it, f"mandatory={number}").code == ExitCode.OK


BOUND = filled(text_of(__file__, "mandatory_seed.yaml"))


@pytest.mark.parametrize("case", BINDING, ids=lambda case: case.title)
def test_what_makes_content_mandatory_stops_until_that_number_is_allowed(tmp_path: Path, case: Case) -> None:
    """Directly or not: a guard that allows nobody counts each person once."""
    number = int(case.told.removeprefix("mandatory="))
    it = project(tmp_path, case.text, seed=BOUND)
    it.write_options(QUIET.replace("{deletes", "{people: off, mandatory: {count: 0}, deletes"))
    before, rows = seen(it), it.rows()
    stopped = applied(it)
    assert (stopped.code, f"--allow mandatory={number}\n" in f"{stopped.err}\n") == (4, True), stopped
    assert applied(it, f"mandatory={number - 1}").code == ExitCode.BLOCKED
    assert it.rows() == rows
    now = seconds(document(it)["created_at"]) or 0
    assert applied(it, f"mandatory={number}").code == ExitCode.OK
    assert evaluate(before, seen(it), now).mandatory == number


def test_new_accounts_do_not_lower_the_share_of_all_people(tmp_path: Path) -> None:
    """It is that of the people who are active when the plan is made: 32 of 62, though there are ten more afterwards."""
    new = (
        "--- new.yaml\nusers: [{for_each: {n: <numbers 0-10>}, email: new$(n)@acme.example, first_name: N, "
        "last_name: Ew, language: en}]\n"
    )
    [group] = [case for case in BINDING if case.title == "a new group"]
    it = project(tmp_path, group.text + new, options="people: {create: true}\n", seed=BOUND)
    assert (guard(document(it), "mandatory")["total"], applied(it).code) == (32, ExitCode.BLOCKED)


@pytest.mark.parametrize("limit", ["{count: off, share: 10%}", "{share: 90%}", "{count: 1000, share: off}"])
def test_a_number_that_is_not_known_stops_at_any_limit(tmp_path: Path, limit: str) -> None:
    """Of the two limits of a guard, one may be off: the other one is not kept either."""
    it = project(tmp_path, "groups: [{name: Team, members: <people 1-30>}]")
    it.write_options(QUIET.replace("{deletes", f"{{people: {limit}, deletes"))
    stopped = applied(it, more=("--no-effects",))
    assert (stopped.code, "--allow people=unknown" in stopped.err) == (ExitCode.BLOCKED, True), stopped
    assert applied(it, "people=unknown", more=("--no-effects",)).code == ExitCode.OK


@pytest.mark.parametrize("case", HARMLESS, ids=lambda case: case.title)
def test_what_takes_nothing_away_passes(tmp_path: Path, case: Case) -> None:
    """Nobody loses, or too few for the guard: no consent is asked for."""
    it = project(tmp_path, case.text)
    ran = applied(it, *[one["allow"] for one in document(it)["guards"] if one["tripped"] and one["name"] != "people"])
    assert ran.code == 0, ran
