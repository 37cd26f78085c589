"""The words of the field: what terraform, kubectl and git do not write is in no message, help text or page."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from rules.test_imports import MAY_IMPORT
from texts import listed_cases

from lmsconf.support.files import guide_topics, read_guide_page

ROOT = Path(__file__).parent.parent.parent

_REMOVE = r"\b[Tt]ak(?:e|es|en|ing) (?:it|them|that|this|one|(?:the|an?) [\w`-]+) "
WORDS: Mapping[str, tuple[str, str]] = {
    "shall": (r"\bshall\b", "the present tense, or `must`"),
    "whoever": (r"\bwhoever\b", "anyone who"),
    "Whoever": (r"\bWhoever\b", "Anyone who"),
    "whom": (r"\bwhom\b", "the person, or a plural"),
    "told": (r"\btold\b", "listed, reported, shown"),
    "said": (r"\b(?:un)?said\b", "declared, set, written; or omitted"),
    "one who": (r"\bone who\b", "a person who"),
    "as the manifest": (r"\bas the manifests? (?:say|said|says)\b", "as declared; or has drifted"),
    " of the keyboard": (r"\bof the keyboard\b", "a typing error"),
    " on": (r"\blean(?:s|t|ing)? on\b", "depends on"),
    "egin": (r"\b[Bb]egins? (?:a project|again)\b", "create a project; reset"),
    "less copying": (r"\bless copying\b", "variables and loops"),
    "gone": (r"\bgone\b", "deleted, missing"),
    "anew": (r"\banew\b", "again, new"),
    "afresh": (r"\bafresh\b", "again, new"),
    "for ever": (r"\bfor ever\b", "without an end"),
    "word of": (r"\bon the word of\b", "from"),
    "speak": (r"\bspeaks? of\b", "declares, manages, contains"),
    "spoken of": (r"\bspoken of\b", "declared, managed"),
    "stand": (r"\bstands? (?:under|here|there|twice|below|above|beside)\b", "is listed under, is a duplicate"),
    " blank": (r"\b(?:a|the) blank\b", "a space"),
    " out": (_REMOVE + r"out\b", "remove"),
    " away": (_REMOVE + r"away\b", "remove"),
    "is no ": (
        r"(?<!here )\bis no (?!longer\b|more\b|other\b|such\b|error\b|difference\b)[a-z]+\b",
        "is not a",
    ),
    "at hand": (r"\bat hand\b", "local, current"),
    "by now": (r"\bby now\b", "now"),
    "meanwhile": (r"\bmeanwhile\b", "during the read, by another process"),
    "mend": (r"\bmend(?:s|ed)?\b", "fix"),
    " up": (r"\bma[dk]e up\b", "generate"),
    "what goes": (r"\bwhat goes\b", "what is deleted"),
    "what comes": (r"\bwhat comes\b", "what is created"),
    "say so": (r"\bsay so\b", "set it"),
}
"""A part of each match → the pattern, and what to write instead."""


class Text(NamedTuple):
    """A text that people read, and its place."""

    place: str
    line: int
    text: str


def patterns_of(text: str) -> Iterator[tuple[str, str]]:
    """The patterns that may match, which are few: looking for a plain part is a hundred times as fast."""
    return (entry for part, entry in WORDS.items() if part in text)


def literals(path: Path) -> Iterator[Text]:
    """The string literals and docstrings of a module that may have a wrong word; an f-string as one text."""
    source = path.read_text(encoding="utf-8")
    joined = re.sub(r"\"\s+f?\"", "", source)
    if not any(re.search(pattern, joined) for pattern, _ in patterns_of(joined)):  # parsing all modules takes seconds
        return
    tree = ast.parse(source)
    place = path.relative_to(ROOT).as_posix()
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield Text(place, node.lineno, "".join(pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield Text(place, node.lineno, node.value)


def descriptions(value: object, place: str) -> Iterator[Text]:
    """The titles and descriptions of a JSON Schema, which editors show."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("title", "description", "summary") and isinstance(inner, str):
                yield Text(place, 0, inner)
            yield from descriptions(inner, place)
    elif isinstance(value, list):
        for inner in value:
            yield from descriptions(inner, place)


def pages() -> Iterator[Text]:
    """The pages of the repository, the guide, the templates of `init`, and the examples."""
    paths = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    for folder, endings in (
        ("lmsconf/guide", {".md"}),
        ("lmsconf/project/texts", {""}),
        ("lmsconf/model", {".json"}),
        (".changes/next", {".md"}),
        ("examples", {".md", ".yaml", ".yml", ".sh", ".toml", ".rego"}),
    ):
        files = sorted((ROOT / folder).rglob("*"))
        paths += [path for path in files if not endings - {""} or path.suffix in endings]
    for path in paths:
        if path.is_file():
            place = path.relative_to(ROOT).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                yield Text(place, number, line)


def texts() -> Iterator[Text]:
    """All texts that the rule is about and that may have a wrong word."""
    for path in sorted((ROOT / "lmsconf").rglob("*.py")):
        yield from literals(path)
    for path in sorted((ROOT / "schemas").glob("*.json")):
        if path.name != "openapi.json":  # the words of the API specification
            yield from descriptions(json.loads(path.read_text(encoding="utf-8")), path.relative_to(ROOT).as_posix())
    yield from pages()


def findings(text: str) -> Iterator[str]:
    """Each wrong word of a text with a few characters around it, and what to write instead."""
    for pattern, better in patterns_of(text):
        for match in re.finditer(pattern, text):
            around = text[max(0, match.start() - 30) : match.end() + 30].replace("\n", " ")
            yield f"{around!r}: write {better}"


def test_the_words_are_those_of_the_field() -> None:
    """Messages, help texts, docstrings, schemas and pages: declare, missing, remove, space."""
    wrong = [f"{text.place}:{text.line}: {finding}" for text in texts() for finding in findings(text.text)]
    assert not wrong, "\n".join(wrong)


@listed_cases("text")
def test_a_wrong_word_is_seen(text: str) -> None:
    """Each of these is what earlier messages were."""
    assert list(findings(text))


@pytest.mark.parametrize("text", ["there is no such file", "the lock is no longer needed", "it stands for 3 values"])
def test_plain_words_are_none(text: str) -> None:
    """What the field writes too."""
    assert not list(findings(text))


# The developers' guide names files and packages that exist, and all packages; its pages have one shape.


GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_file_of_the_guide_exists() -> None:
    """A path in backticks that begins with lmsconf/, tests/ or schemas/ is a file or a folder."""
    named = re.findall(r"`((?:lmsconf|tests|schemas)/[\w/.]+)`", GUIDE)
    assert len(named) > 25
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_guide_lists_every_package_in_the_order_of_imports() -> None:
    """Its table has a row for each package, and the order in which they may import."""
    rows = re.findall(r"^\| `(\w+)(?:\.py|/)` \|", GUIDE, re.MULTILINE)
    assert rows == list(MAY_IMPORT)


def test_the_guide_has_the_test_line_of_the_readme() -> None:
    """One command sets up and tests, the same on both pages."""
    line = re.search(r"```sh\n(.*)\n```", GUIDE)
    assert line is not None
    assert line.group(1) in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("topic", guide_topics())
def test_pages_of_the_guide_have_one_shape(topic: str) -> None:
    """A title, what the page is for in a sentence that the list of topics has room for, at the end links to others."""
    page = re.sub(r"^<!-- .* -->\n", "", read_guide_page(topic), flags=re.MULTILINE)
    assert page.count("\n") <= 250
    title, purpose, *_, last = page.strip().split("\n\n")
    assert re.fullmatch(r"# .+", title)
    assert purpose.endswith(".")
    assert len(purpose.partition(". ")[0].rstrip(".")) <= 57  # `lmsconf help` in 80 columns
    assert not purpose.startswith(("#", "|", "-", "```"))
    assert len(re.findall(r"^- \[[\w-]+\]\([\w-]+\.md\): ", last, re.MULTILINE)) >= 2
