# ruff: noqa: RUF001  # letters of other scripts are what this is about
"""What others have written does no harm: long values are cut, unusable ids are not sent, saved files are private."""

import json
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cli.served import served
from flow.project import Project
from flow.shell import Ran, lmsconf
from texts import listed_cases

from lmsconf.errors import SHOWN, ExitCode
from lmsconf.render.escape import (
    csv_cell,
    escape_html,
    escape_markdown,
    escape_terminal,
    markdown_code,
    markdown_fence,
)
from lmsconf.sandbox.service import LoggedRequest, Sandbox, SandboxResponse

from . import active_content
from .active_content import HALF, NAMES

LONG = "k" * SHOWN + "S3cret" * 10
PROJECT = "workspaces: {p: {url: 'sandbox:'}}\n"
NUMBER = "3" * 10 + "7" * 99


@pytest.mark.sampled(day=4)
@listed_cases("project", "manifest")
def test_a_long_value_is_cut(project: str, manifest: str, tmp_path: Path) -> None:
    """Of any value, 60 characters stand in message and hint at most."""
    files = {"lmsconf.yaml": project or "PROJECT", "manifests/all.yaml": manifest or "groups: []\n"}
    lists = {"manifests/a.csv": "email\nLONG\n", "manifests/b.csv": "email\na@x.example\n"}
    (tmp_path / "manifests").mkdir()
    for name, text in (*files.items(), *lists.items()):
        for word, meant in (("PROJECT", PROJECT), ("NUMBER", NUMBER), ("LONG", LONG)):
            text = text.replace(word, meant)
        (tmp_path / name).write_text(text)
    # A workspace that is not there is a warning.
    ran = lmsconf(tmp_path, "validate", code=ExitCode.OK if "only_in" in manifest else ExitCode.ERROR)
    assert not [long for long in ("S3cretS3cret", "7" * SHOWN) if long in ran.out + ran.err]
    assert ran.err


# Ids of a service that cannot stand in a path: nothing is sent with them, and every command ends with a sentence.


SEED = "people: [{email: a@x.example}]\ngroups: [{name: Mentors}, {name: Coaches, members: [a@x.example]}]\n"
UNUSABLE = ["..", ".", "a\u0000", "\x1b[2J", "../..\n"]


class Altering(Sandbox):
    """A workspace whose responses are altered on their way."""

    alter: Callable[[str, str], str] = staticmethod(lambda method, text: text)

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        right = super().answer(method, path, query, headers, body)
        altered = self.alter(method, right.body.decode()).encode()
        length = {name: str(len(altered)) for name in right.headers if name.lower() == "content-length"}
        return SandboxResponse(right.status, {**right.headers, **length}, altered)


def answered(
    root: Path, alter: Callable[[str, str], str], manifest: str, *command: str
) -> tuple[Ran, list[LoggedRequest]]:
    """What a command comes to where the service's answers are altered, and what it sent."""
    Project(root, SEED, "settle: 0s\n").write(manifest)
    with served(root, Altering) as (service, env):
        service.alter = alter
        ran = lmsconf(root, *command, env=env)
    assert "Traceback" not in ran.err
    assert not {"\x1b", "\0"} & {*ran.out, *ran.err}
    return ran, service.log


CREATED = ("groups: [{name: New, members: [a@x.example]}]", "apply", "--auto-approve")


@pytest.mark.parametrize("id", UNUSABLE)
def test_a_listing_with_an_unusable_id_is_incomplete(id: str, tmp_path: Path) -> None:
    """It is an error with the reason where a change needs it, and no request has the id."""
    emptied = ("groups: [{name: Coaches, members: []}]", "plan")
    ran, log = answered(tmp_path, lambda method, text: text.replace('"g-2"', json.dumps(id)), *emptied)
    assert (ran.code, "has an unusable groupId" in ran.err) == (ExitCode.ERROR, True)
    assert {request.method for request in log} == {"GET"}


def created_as(id: object) -> Callable[[str, str], str]:
    return lambda method, text: text.replace('"g-3"', json.dumps(id)) if method == "POST" else text


@pytest.mark.sampled(day=5)
@pytest.mark.parametrize("id", UNUSABLE)
def test_a_creation_with_an_unusable_id_is_not_built_upon(id: str, tmp_path: Path) -> None:
    """The apply goes on to its end and reports the call as one whose result is not known; later calls are not sent."""
    ran, log = answered(tmp_path, created_as(id), *CREATED)
    assert ran.code == ExitCode.PARTIAL
    assert "group/New" in ran.out + ran.err
    assert [request.method for request in log if request.writes] == ["POST"]


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize("id", ["", True, {}])
def test_a_creation_whose_id_is_no_text_is_looked_up(id: object, tmp_path: Path) -> None:
    """It says as little as a response without an id."""
    ran, _ = answered(tmp_path, created_as(id), *CREATED)
    assert ran.code == ExitCode.OK, ran


def test_the_time_of_an_edited_snapshot_acts_nowhere(tmp_path: Path) -> None:
    """Whatever a snapshot file says of its time, `show` writes it on one line, without controls. It is its owner's."""
    Project(tmp_path, SEED).write("groups: []\n")
    lmsconf(tmp_path, "snapshot", "out", code=0)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    edited = {**json.loads((tmp_path / "out").read_text()), "taken_at": "\x1b[2J\n::error::x"}
    (tmp_path / "out").write_text(json.dumps(edited))
    assert active_content.text(lmsconf(tmp_path, "show", "out", code=0).out) == []


# One escape for each format: 300 hostile names, and nothing of them acts.


ALL = [*NAMES, *HALF]


def test_there_are_enough_of_them() -> None:
    """At least three hundred names, and the judges see most of them act where nothing is escaped."""
    assert len(NAMES) >= 300
    assert sum(bool(active_content.text(name)) for name in NAMES) > 100
    assert sum(bool(active_content.markdown(name)) for name in NAMES) > 150
    assert sum(bool(active_content.html(f"<p>{name}</p>")[2:]) for name in NAMES) > 40


@pytest.mark.parametrize("around", ["{}", "  + group/{} will be created", "{}: done", "      {}"])
def test_text(around: str) -> None:
    """A name in a line leaves it one line without controls, wherever it stands."""
    assert [
        (name, active_content.text(line))
        for name in ALL
        if active_content.text(line := around.format(escape_terminal(name)))
    ] == []
    assert all("\n" not in escape_terminal(name) for name in ALL)


def test_text_shows_what_it_hides() -> None:
    """Every control, bidi mark and half character in Unicode has a visible form, and letters stay as they are."""
    for number in (*range(sys.maxunicode + 1),)[:0x3200]:
        char = chr(number)
        if active_content.RAW.match(char) or char == "\n":
            assert escape_terminal(char).isprintable(), hex(number)
            assert escape_terminal(f"a{char}b") != f"a{char}b", hex(number)
    for kept in ("Åsa Öberg", "日本語", "می\u200cخواهم", "\U0001f468\u200d\U0001f469", "a: b", "a::b", "# [a]", "a\\b"):
        assert escape_terminal(kept) == kept


@pytest.mark.parametrize(
    ("around", "frame"),
    [
        ("{}", []),
        ("A {} b", []),
        ("Changes: {}, {}.", []),
        ("- {}\n", ["bullet_list_open", "list_item_open", "list_item_close", "bullet_list_close"]),
        ("### {}\n", ["heading_open", "heading_close"]),
    ],
    ids=["alone", "between", "twice", "item", "heading"],
)
def test_markdown_in_a_line(around: str, frame: list[str]) -> None:
    """A name among words, in an item or a heading makes no node, no link and no mention."""
    for name in ALL:
        assert active_content.markdown(around.replace("{}", escape_markdown(name))) == frame, name


@listed_cases("sentence")
def test_markdown_leaves_sentences_as_they_are(sentence: str) -> None:
    """Marks that do nothing where they stand are not escaped: mails and chats show comments as they are written."""
    assert escape_markdown(sentence) == sentence


def test_markdown_in_a_cell() -> None:
    """A name in a table's cell ends neither the cell nor the row, as text and as code."""
    for escape, extra in ((escape_markdown, []), (markdown_code, ["code_inline"])):
        for name in ALL:
            page = f"| a | b |\n|---|---|\n| {escape(name)} | c |\n"
            nodes = [one for one in active_content.markdown(page) if one not in _TABLE]
            assert nodes == extra, (name, nodes)
            assert [token.type for token in active_content.READS.parse(page)].count("td_open") == 2, name


_TABLE = {f"{tag}_{end}" for tag in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")}


def test_markdown_reads_as_the_text_does() -> None:
    """Whoever looks at the page reads what the text format shows; only blanks are others, and one that is not seen."""
    for name in ALL:
        rendered = active_content.html_words(active_content.READS.render(escape_markdown(name)))
        plain = rendered.replace("\u200b", "").replace("\xa0", " ").strip("\n")
        assert plain == escape_terminal(name).replace("\\x3a:", "::").replace("#\\x23", "##").replace("\xa0", " "), name


def test_markdown_code_can_be_copied() -> None:
    """A span of code gives back what the text format shows, but for pipes."""
    for name in ALL:
        (paragraph, inline, _) = active_content.READS.parse(markdown_code(name))
        assert paragraph.type == "paragraph_open"
        assert inline.children
        assert [child.type for child in inline.children] == ["code_inline"], name
        assert inline.children[0].content == (escape_terminal(name).replace("|", "\xa6") or " "), name


def test_markdown_fence() -> None:
    """No line of a block of code ends it: all names in one block are one block."""
    page = markdown_fence("\n".join(ALL), "diff") + "\n\nafter\n"
    block, *rest = active_content.READS.parse(page)
    assert (block.type, block.info) == ("fence", "diff")
    assert [token.type for token in rest] == ["paragraph_open", "inline", "paragraph_close"]
    assert active_content.text(page) == []
    for name in ALL:
        assert [token.type for token in active_content.READS.parse(markdown_fence(name))] == ["fence"], name


def test_html() -> None:
    """A name makes no tag, attribute or comment, in an element and in both kinds of attribute; XML readers take it."""
    for name in ALL:
        page = f"<p title=\"{escape_html(name)}\" lang='{escape_html(name)}'>{escape_html(name)}</p>"
        assert active_content.html(page) == ["p", "p.title", "p.lang", "/p"], name
        said = escape_terminal(name).replace("\\x3a:", "::").replace("#\\x23", "##")
        assert active_content.html_words(page) == active_content.xml_words(escape_html(name)) == said, name


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv(delimiter: str) -> None:
    """A name is one cell for readers with any separator, and no cell begins a formula."""
    for name in ALL:
        (cell,) = active_content.csv_cells(csv_cell(name), delimiter)
        assert cell.removeprefix("'") == escape_terminal(name).removeprefix("'"), name
        assert cell.lstrip()[:1] not in {*"=+-@|%", "\uff0b", "\uff0d", "\uff1d", "\uff20"}, name
        assert active_content.text(csv_cell(name)) == []
