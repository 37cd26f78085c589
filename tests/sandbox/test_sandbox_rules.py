"""The rules of the service, each with the requests that show it: `=== rule`, its settings, requests and responses.

`METHOD path body` is a request; the indented line below says of the response its status, where it is not a success, and
what it shows: of an object the keys that matter, null for one that is not there, or the message of an error. `exactly`
is followed by all that it shows. `more` is more of the seed, or its file in `texts`; `seed` a file in place of it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import yaml
from texts import text_of

from lmsconf.sandbox.faults import FaultScript, parse_faults

from .conftest import DAY, Clock, Open

RULES = Path(__file__).with_name("rules.txt")
SETTING = re.compile(r"(chosen|dialect|faults|more|seed|for \w+): (.*)\n")


class Rule(NamedTuple):
    """One rule, the settings of its workspace, and the lines of requests and responses."""

    title: str
    settings: dict[str, str]
    lines: list[str]


def rules() -> Iterator[Rule]:
    """All of them; one with `for name:` once for each value, in place of `$name`."""
    for part in RULES.read_text(encoding="utf-8").split("=== ")[1:]:
        title, text = part.split("\n", 1)
        settings = dict(SETTING.findall(text))
        lines = SETTING.sub("", text)
        names = [key for key in settings if key.startswith("for ")]
        for value in settings[names[0]].split(", ") if names else [""]:
            mark = f"${names[0].removeprefix('for ')}" if names else "$"
            yield Rule(title + (f" ({value})" if names else ""), settings, lines.replace(mark, value).splitlines())


@pytest.mark.parametrize("rule", [pytest.param(one, id=one.title) for one in rules()])
def test_the_sandbox_keeps_a_rule(open_workspace: Open, clock: Clock, tmp_path: Path, rule: Rule) -> None:
    """Each request is answered as the rule says, and all others succeed."""
    more, seed = rule.settings.get("more", "{}"), rule.settings.get("seed")
    more = yaml.safe_load(more if more.startswith("{") else text_of(__file__, more))
    faults = None
    if "faults" in rule.settings:
        (tmp_path / "faults.yaml").write_text(rule.settings["faults"], encoding="utf-8")
        faults = FaultScript(*parse_faults(tmp_path / "faults.yaml"))
    dialect = yaml.safe_load(rule.settings.get("dialect", "{}"))
    api = open_workspace(dialect, clock=clock, faults=faults, more=more, seed=seed)
    for line, following in zip(rule.lines, [*rule.lines[1:], ""], strict=True):
        if line.startswith("after "):
            _, number, unit = line.split()
            clock.now += int(number) * (1 if unit == "ms" else DAY)
        elif not line.startswith("  "):
            method, path, *body = line.split(" ", 2)
            response = api.call(method, path, *map(json.loads, body))
            check(response, following.strip() if following.startswith("  ") else "")


def check(response: httpx.Response, said: str) -> None:
    """Whether a response has the status that is said, or that of a success, and shows the object or the message."""
    status, shown = re.fullmatch(r"(\d{3}\b)? ?(.*)", said).groups()
    assert response.status_code == int(status) if status else response.is_success, (said, response.text)
    if shown.startswith("exactly "):
        assert response.json() == json.loads(shown.removeprefix("exactly "))
    elif shown.startswith(("{", "[")):
        assert of_interest(response.json(), json.loads(shown)) == json.loads(shown)
    elif shown:
        assert response.json()["message"] == shown


def of_interest(answer: object, shown: object) -> object:
    """The part of an answer that is said: of each object the keys that are named, and lists whole; null: not there."""
    if isinstance(answer, dict) and isinstance(shown, dict):
        assert None not in answer.values()
        return {key: of_interest(answer.get(key), value) for key, value in shown.items()}
    if isinstance(answer, list) and isinstance(shown, list) and len(answer) == len(shown):
        return [of_interest(one, other) for one, other in zip(answer, shown, strict=True)]
    return answer
