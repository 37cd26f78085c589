"""The rules of the service, each with the requests that show it: `=== rule`, its settings, requests and responses.

`METHOD path body` is a request; the indented line below says of the response its status, where it is not a success, a
header in parentheses, and what it shows: of an object the keys that matter, null for one that is not there, or the
message of an error. `exactly` is followed by all that it shows, `text` by what need not be JSON; `broken`: none comes.
`more` is more of the seed, or its file in `texts`; `seed` a file in place of it.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import NamedTuple

import httpx
import jsonschema
import pytest
import yaml
from texts import text_of

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.faults import FaultScript, parse_faults
from lmsconf.sandbox.handlers import CHOICES

from .conftest import DAY, Clock, Open

RULES = Path(__file__).with_name("rules.txt")
JSON = {"content-type": "application/json"}
CODES = {400: "bad_request", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 409: "conflict"}
"""Status → the word for it in the response."""
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
def test_the_sandbox_keeps_a_rule(open_workspace: Open, tmp_path: Path, rule: Rule) -> None:
    """Each request is answered as the rule says, and all others succeed, in the shape of the description."""
    more, seed, clock = rule.settings.get("more", "{}"), rule.settings.get("seed"), Clock()
    more = yaml.safe_load(more if more.startswith("{") else text_of(__file__, more))
    faults = None
    if "faults" in rule.settings:
        (tmp_path / "faults.yaml").write_text(rule.settings["faults"], encoding="utf-8")
        faults = FaultScript(*parse_faults(tmp_path / "faults.yaml"))
    dialect = rule.settings.get("dialect", "{}")
    api = open_workspace(yaml.safe_load(dialect), clock=clock, faults=faults, more=more, seed=seed)
    for line, following in zip(rule.lines, [*rule.lines[1:], ""], strict=True):
        if line.startswith("after "):
            _, number, unit = line.split()
            clock.now += int(number) * (1 if unit == "ms" else DAY)
        elif not line.startswith("  "):
            method, path, *body = line.split(" ", 2)
            expected = following[2:] if following.startswith("  ") else ""
            with pytest.raises(httpx.RemoteProtocolError) if expected == "broken" else nullcontext():
                content = {"content": body[0].encode(), "headers": JSON} if body else {}
                response = api.client.request(method, path, **content)
                check(response, expected)
                if response.status_code == 200 and faults is None:
                    described(api.sandbox.log[-1].operation, dialect).validate(response.json())


def check(response: httpx.Response, said: str) -> None:
    """Whether a response has the status and the header that are said, or a success's, and shows what is said."""
    status, name, value, shown = re.fullmatch(r"(\d{3}\b)? ?(?:\(([\w-]+): (.*?)\))? ?(.*)", said).groups()
    assert response.status_code == int(status) if status else response.is_success, (said, response.text)
    assert name is None or response.headers[name] == value
    if shown.startswith("exactly "):
        assert response.json() == json.loads(shown.removeprefix("exactly "))
    elif shown.startswith(("{", "[")):
        assert of_interest(response.json(), json.loads(shown)) == json.loads(shown)
    elif shown.split(" ")[0] == "text":
        assert response.text == shown[5:]
    elif shown:
        assert response.json() == {"error": CODES.get(response.status_code, "fault"), "message": shown}


def of_interest(answer: object, shown: object) -> object:
    """The part of an answer that is said: of each object the keys that are named, and lists whole; null: not there."""
    if isinstance(answer, dict) and isinstance(shown, dict):
        assert None not in answer.values()
        return {key: of_interest(answer.get(key), value) for key, value in shown.items()}
    if isinstance(answer, list) and isinstance(shown, list) and len(answer) == len(shown):
        return [of_interest(one, other) for one, other in zip(answer, shown, strict=True)]
    return answer


@cache
def described(operation: str, dialect: str) -> jsonschema.Draft202012Validator:
    """What judges an operation's response by the description, which has no key besides."""
    return jsonschema.Draft202012Validator(closed(ApiSpec(yaml.safe_load(dialect))[operation].success))


def closed(schema: object) -> object:
    """The schema, open to nothing that it does not name: also where it joins several, of which each is open."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if "allOf" in schema:
        inner = {"properties": closed({name: value for part in flat(schema) for name, value in part.items()})}
    return inner | {"additionalProperties": False} if "properties" in inner else inner


def flat(schema: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """The properties of a schema and of all that it joins."""
    if "properties" in schema:
        yield schema["properties"]
    for part in schema.get("allOf", []):
        yield from flat(part)


# What was chosen where the specification is silent is listed, and each choice has a test that shows it.


def chosen_names() -> set[str]:
    """The names that tests and rules of this folder are marked with."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = [one for one in node.decorator_list if isinstance(one, ast.Call)]
                names = [one.args for one in marks if isinstance(one.func, ast.Name) and one.func.id == "chosen"]
                found |= {ast.literal_eval(name) for some in names for name in some}
    for rule in rules():
        found |= set(rule.settings.get("chosen", "").split(", ")) - {""}
    return found


def test_each_choice_has_a_test():
    """Every choice is shown by a test, and every test that shows one names one that is listed."""
    assert chosen_names() == CHOICES.keys()


def test_choices_are_sentences():
    """A choice is told in a sentence, each in its own."""
    assert all(text[0].isupper() and text.endswith(".") for text in CHOICES.values())
    assert len(set(CHOICES.values())) == len(CHOICES)
