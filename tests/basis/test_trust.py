"""`plan --base`: what the project file of a change may not decide alone, and `--trust-project`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lmsconf.errors import Problem, ProblemsFound, UsageError
from lmsconf.project.base_trust import (
    NOWHERE,
    PARTS,
    RequestDestination,
    parse_trusted_parts,
    refuse_untrusted_changes,
    request_destination,
)
from lmsconf.project.config_reader import read_project_file

BASE = "workspaces: {p: {url: 'https://lms.example', token: {env: LMSCONF_TOKEN}}}\n"


def told(root: Path, now: str, base: str | None = BASE, trusted: str | None = None) -> list[str]:
    """The codes of what is refused."""
    return [problem.code for problem in refused(root, now, base, trusted)]


def refused(root: Path, now: str, base: str | None, trusted: str | None = None) -> Sequence[Problem]:
    before = NOWHERE if base is None else read(root / "before", base)
    try:
        refuse_untrusted_changes(
            read(root / "now", now), before, parse_trusted_parts(trusted), workspace="p", name="main"
        )
    except ProblemsFound as found:
        return found.problems
    return ()


def read(folder: Path, text: str) -> RequestDestination:
    folder.mkdir(exist_ok=True)
    (folder / "lmsconf.yaml").write_text(text)
    return request_destination(read_project_file(folder), "p", folder)


CHANGES = [
    (BASE, BASE, []),
    (BASE + "guards: off\nvars: {a: b}\n", BASE, []),
    (BASE.replace("lms.", "lms2."), BASE, ["trust/url"]),
    (BASE.replace("LMSCONF_TOKEN", "LMSCONF_OTHER"), BASE, ["trust/token"]),
    (BASE.replace("{env: LMSCONF_TOKEN}", "{command: [a]}"), BASE, ["trust/command"]),
    (BASE.replace(", token: {env: LMSCONF_TOKEN}", ""), BASE, ["trust/token"]),
    (BASE + "dialect: {paging.limit: 50}\n", BASE, ["trust/dialect"]),
    (BASE.replace("}}", "}, dialect: {paging.limit: 50}}"), BASE + "dialect: {paging.limit: 50}\n", []),
    (BASE, None, ["trust/url", "trust/token"]),
    (BASE, BASE.replace("p:", "q:"), ["trust/url", "trust/token"]),
    (BASE, BASE.replace("https://lms.example", "sandbox:"), ["trust/url"]),
]


@pytest.mark.parametrize(("now", "base", "codes"), CHANGES)
def test_what_differs_is_refused_until_it_is_named(
    tmp_path: Path, now: str, base: str | None, codes: list[str]
) -> None:
    """url, token, command and dialect of the workspace at hand, and nothing else; each passes by its own name."""
    assert told(tmp_path, now, base) == codes
    assert told(tmp_path, now, base, ",".join(PARTS)) == []
    for code in codes:
        assert told(tmp_path, now, base, code.removeprefix("trust/")) == [one for one in codes if one != code]


@pytest.mark.parametrize(("now", "base", "codes"), [one for one in CHANGES if one[2]])
def test_a_refusal_names_the_option_that_trusts_the_change(
    tmp_path: Path, now: str, base: str | None, codes: list[str]
) -> None:
    """The hint has the parts that differ and no other, also where some of them are trusted already."""
    parts = [code.removeprefix("trust/") for code in codes]
    option = f"--trust-project={','.join(parts)}"
    for trusted in (None, *parts[1:]):
        for problem in refused(tmp_path, now, base, trusted):
            assert problem.hint == f"No request was sent. If you have reviewed the change: {option}"


def test_a_refusal_shows_values_as_they_are_written(tmp_path: Path) -> None:
    """Letters other than ASCII in a token source are readable in the message."""
    [problem] = refused(tmp_path, BASE.replace("{env: LMSCONF_TOKEN}", "{file: größe.txt}"), BASE)
    assert problem.message == ('workspaces.p: the token is {"file": "größe.txt"}, and in main {"env": "LMSCONF_TOKEN"}')


def test_a_refusal_names_the_keys_of_the_dialect_that_differ(tmp_path: Path) -> None:
    """Those that were added, removed or changed, in order, and none that the base says as well."""
    now = BASE + "dialect: {paging.limit: 50, content-targets.on-existing: recreate}\n"
    base = BASE + "dialect: {paging.limit: 99, content-targets.on-existing: recreate, custom-fields.in-use: never}\n"
    [problem] = refused(tmp_path, now, base)
    keys = "custom-fields.in-use, paging.limit"
    assert problem.message == f"workspaces.p: the dialect differs from that of main in {keys}"


def test_each_part_is_refused_at_its_place(tmp_path: Path) -> None:
    """The file, line and column of the value; nothing for one that the file does not have any more."""
    text = "dialect: {paging.limit: 50}\n" + BASE
    with pytest.raises(ProblemsFound) as found:
        refuse_untrusted_changes(read(tmp_path / "now", text), NOWHERE, frozenset(), workspace="p", name="main")
    places = {problem.code: problem.source for problem in found.value.problems}
    assert {code: (at.line, at.column) for code, at in places.items() if at} == {
        "trust/url": (2, text.splitlines()[1].index("'https") + 1),
        "trust/token": (2, text.splitlines()[1].index("{env") + 1),
        "trust/dialect": (1, 11),
    }
    now, base = read(tmp_path / "now", BASE.replace(", token: {env: LMSCONF_TOKEN}", "")), read(tmp_path / "base", BASE)
    with pytest.raises(ProblemsFound) as found:
        refuse_untrusted_changes(now, base, frozenset(), workspace="p", name="main")
    assert [problem.source for problem in found.value.problems] == [None]


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("[sh, bin/token.sh]", "now/bin/token.sh"),
        ("[sh, -c, 'bin/token.sh; true']", "now/bin/token.sh"),
        ("[vault, --config=bin/vault.ini]", "now/bin/vault.ini"),
        ("[sh, ../scripts/token.sh]", "scripts/token.sh"),
        ("[now/token]", "now/now/token"),
    ],
)
def test_a_command_of_the_project_is_never_that_of_the_base(words: str, file: str, tmp_path: Path) -> None:
    """The words are the same, but a file that they name, in the project or its repository, is that of the change."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    said = BASE.replace("{env: LMSCONF_TOKEN}", f"{{command: {words}}}")
    assert told(tmp_path, said, said) == []
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert told(tmp_path, said, said) == ["trust/command"]
    path.unlink()
    path.symlink_to("/bin/true")
    assert told(tmp_path, said, said) == ["trust/command"]


def test_only_parts_can_be_trusted() -> None:
    """A word that is none of them is a wrong command line."""
    assert parse_trusted_parts("url, dialect") == {"url", "dialect"}
    with pytest.raises(UsageError, match="there is no guards"):
        parse_trusted_parts("url,policy,guards")
