"""`lmsconf explain`: what a key means, from the schema that manifests are checked by."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf, run
from json_schemas import schema_validator
from texts import listed_cases

import lmsconf as package
from lmsconf.errors import ExitCode, UsageError
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.user.types import TEXTS
from lmsconf.manifest.explain import explain, explainable
from lmsconf.manifest.schema_check import manifest_schema
from lmsconf.model.guards import GUARDS
from lmsconf.model.lint_codes import RULES
from lmsconf.model.problem_codes import meaning_of, meanings
from lmsconf.project.credentials import PARTS
from lmsconf.render.help_pages import explain_json


def paths(schema: Mapping[str, object], trail: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path of keys that the schema has, in two levels."""
    for one in (schema, schema.get("items", {})):
        found = one.get("properties", {}) if isinstance(one, dict) else {}
        for name, part in found.items():
            yield (*trail, name)
            if len(trail) < 2:
                yield from paths(part, (*trail, name))


def test_every_key_is_explained() -> None:
    """Each has a type in words, a meaning, and a document that fits its schema; one with an unknown key does not."""
    validator = schema_validator("explain")
    for path in sorted({".".join(trail) for trail in paths(manifest_schema())}):
        found = explain(path)
        assert found.path == path
        assert "anything" not in found.type, path
        assert found.meaning, path
        document = json.loads(explain_json(found))
        assert [error.message for error in validator.iter_errors(document)] == []
        assert not validator.is_valid({**document, "extra": 1})


@listed_cases("asked", "said", "hint")
def test_an_unknown_word(asked: str, said: str, hint: str) -> None:
    """The nearest word that is there is offered: of keys, wherever they may stand, and of codes."""
    with pytest.raises(UsageError) as error:
        explain(asked)
    assert (error.value.message, error.value.hint) == (said, hint)


def test_what_is_printed(tmp_path: Path) -> None:
    """For a person the keys with their meaning; for a script the same as a document."""
    assert lmsconf(tmp_path, "explain", "smart_group.conditions").out.startswith(
        "smart_groups.conditions: list of mapping\n\n  Conditions; people must meet all of them.\n\nKeys:\n  field "
    )
    document = lmsconf(tmp_path, "explain", "group", "--format", "json").document
    assert (document["format"], document["path"]) == ("lmsconf.explain/1", "groups")
    assert isinstance(document["keys"], list)
    name = {"name": "name", "type": "text", "meaning": "The name in the workspace.", "needed": True}
    assert document["keys"][0] == name


def project_paths(path: str = "project") -> Iterator[str]:
    """Every path of keys of the project file."""
    for key in explain(path).keys:
        below = f"{path}.{key.name}"
        yield below
        if "/" not in key.name:
            yield from project_paths(below)


def test_every_key_of_the_project_file_is_explained() -> None:
    """Without the word before it too, where no section of a manifest has the same name."""
    for path in project_paths():
        found = explain(path)
        assert found.path == path.removeprefix("project.")
        assert found.type.startswith("key of lmsconf.yaml: "), path
        assert found.meaning, path
        assert explain(found.path) == found or found.path == "lint", path


@listed_cases("asked", "path", "meaning")
def test_other_things_are_explained(asked: str, path: str, meaning: str) -> None:
    """The project file, keys that may stand in many places, sets, loops, tests, windows, lints and codes."""
    found = explain(asked)
    assert found.path == path
    assert meaning in found.meaning


def test_a_key_with_several_meanings_is_explained_place_by_place() -> None:
    """`name` is that of a field, of a group, of content: each path is listed with what it means there."""
    found = explain("name")
    assert {"groups.name", "custom_fields.name", "tests.name"} <= {key.name for key in found.keys}
    assert all(key.meaning for key in found.keys)
    assert not any(key.name.startswith("absent.") for key in found.keys)


def test_without_an_argument_all_is_listed() -> None:
    """Sections, and the words that list what else there is; each of them is explained."""
    schema_validator("explain").validate(json.loads(explain_json(explain(""))))
    names = [key.name for key in explain("").keys]
    assert names[-3:] == ["project", "lint", "codes"]
    assert all(explain(name).keys for name in names)
    assert len([*explainable("lint/cl")]) == len({*explainable("lint/cl")})


_CODE = re.compile(r'"([a-z][a-z_-]*/[a-z][a-z-]*)"')
_NO_CODES = {"application/json", "application/gzip", "text/html", "examples/acme", "github/lmsconf-"}


def test_every_code_is_explained() -> None:
    """Each code that stands in the program has a meaning, and no other has one."""
    root = Path(package.__file__).parent
    program = "".join(file.read_text(encoding="utf-8") for file in root.rglob("*.py"))
    codes = set(_CODE.findall(program)) - _NO_CODES
    # Those of classes of errors have no slash, and those of files of the sandbox and of sheets are put together.
    codes |= {*re.findall(r'^(?:class .+, code=|    code: str = )"(.+?)"', program, re.MULTILINE)}
    sorts = re.findall(r'(?:file_problem\(|read_yaml\(path, )"([a-z]+)"', program)
    codes |= {f"{sort}/{word}" for sort in sorts for word in re.findall(r'code=f"\{file_kind\}/([a-z]+)"', program)}
    codes |= {f"sheet/{kind.entry_items.noun}" for kind in KINDS.values() if kind.entry_items is not None}
    for file in root.rglob("kinds/**/*.py"):
        arguments = re.findall(r"report_missing_key\(planning, declared, ([^)]+)\)", file.read_text(encoding="utf-8"))
        keys = TEXTS if arguments == ["key"] else [word for one in arguments for word in re.findall('"(.+?)"', one)]
        kind = "smart-group" if file.stem == "group" else file.parent.name.replace("_", "-")
        codes |= {f"{kind}/{key}-needed" for key in keys}
    assert {"error", "usage", "seed/invalid", "faults/yaml", "sheet/audience", "user/language-needed"} <= codes
    assert {
        code for code in codes if meaning_of(code) is None and code not in RULES and not code.endswith("-")
    } == set()
    built = ("guard/", "trust/", "manifest/", "sheet/", "set/", "window/", "reference/unknown-", "usage", "interrupted")
    assert {code for code in meanings() if code not in codes and not code.startswith(built)} == set()
    assert {f"guard/{name}" for name in GUARDS} | {f"trust/{part}" for part in PARTS} <= meanings().keys()


# `lmsconf api` sends one call, prints the answer, and exits as the table of exit codes says.


SEED = "people: [{email: anna.berg@acme.example}, {email: bo.ek@acme.example}]\ngroups: [{name: Säljare}]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a workspace that lasts from call to call."""
    return Project(tmp_path, SEED, "dialect: {manual-groups.rename.name: newName}\n").root


def test_the_answer_is_printed_as_json(project: Path) -> None:
    """What the service answers goes to stdout, whole and readable, and nothing else does."""
    ran = lmsconf(project, "api", "GET", "/groups", code=ExitCode.OK)
    assert ran.document == {"groups": [{"groupId": "g-1", "name": "Säljare"}]}
    assert "Säljare" in ran.out


def test_no_answer_is_printed_where_people_are_masked(project: Path) -> None:
    """The answer would name people as it is, so with --mask-people no request is sent."""
    post = ("api", "POST", "/groups", "--body", '{"name": "New"}')
    assert lmsconf(project, "api", "--mask-people", "GET", "/users", code=ExitCode.USAGE).out == ""
    assert lmsconf(project, *post, env={"LMSCONF_MASK_PEOPLE": "1"}, code=ExitCode.USAGE).out == ""
    got = lmsconf(project, "api", "GET", "/groups", env={"LMSCONF_MASK_PEOPLE": "0"}, code=ExitCode.OK)
    assert "New" not in got.out


def test_queries_are_given_by_name(project: Path) -> None:
    """Each --query is one parameter; a name that is a duplicate is sent twice."""
    found = lmsconf(project, "api", "get", "/users", "--query", "filter=bo.ek", "--query", "limit=5", code=ExitCode.OK)
    assert [user["email"] for user in found.document["users"]] == ["bo.ek@acme.example"]
    groups = ("--query", "groupIds[]=g-1", "--query", "groupIds[]=EVERYONE")
    lmsconf(project, "api", "GET", "/content/all", *groups, code=ExitCode.OK)


def test_a_body_is_sent_as_it_is_written(project: Path) -> None:
    """Names in it go out unchanged, whatever the dialect says; `-` is stdin; an empty answer prints nothing."""
    rename = ("api", "POST", "/groups/g-1/rename", "--body")
    assert lmsconf(project, *rename, '{"newName": "Sales"}', code=ExitCode.OK).out == ""
    assert "newName" in lmsconf(project, *rename, '{"name": "Sales"}', code=ExitCode.ERROR).err
    ran = lmsconf(project, "api", "POST", "/groups", "--body", "-", answer='{"name": "Piped"}', code=ExitCode.OK)
    assert ran.document == {"groupId": "g-2"}


@listed_cases("arguments")
def test_a_wrong_command_line_sends_nothing(project: Path, arguments: Sequence[str]) -> None:
    """A path that leads elsewhere, a query without a value and a body that is no JSON are a wrong command line."""
    assert lmsconf(project, "api", *arguments, code=ExitCode.USAGE).out == ""


def test_a_refusal_is_an_error(project: Path) -> None:
    """What the service refuses ends with exit 1, its reason on stderr."""
    assert "404" in lmsconf(project, "api", "GET", "/users/nobody", code=ExitCode.ERROR).err


# `lmsconf fmt` from the command line: which files, what is written, and exit codes.


MIXED = "groups:\n  - name: b\n  - members: []\n    name: a\n"
ORDERED = "groups:\n  - name: a\n    members: []\n  - name: b\n"

Fmt = Callable[..., Ran]


@pytest.fixture
def fmt(tmp_path: Path) -> Fmt:
    """Runs the command in a project with a manifest that is not in order, and gives exit code, stdout and stderr."""
    Project(tmp_path).write(ORDERED)
    (tmp_path / "manifests" / "deep").mkdir()
    (tmp_path / "manifests" / "deep" / "a.yaml").write_text(MIXED)
    return partial(run, "-C", str(tmp_path), "fmt")


def test_the_whole_project(fmt: Fmt, tmp_path: Path) -> None:
    """What changed is listed, once; the mode of a file stays."""
    path = tmp_path / "manifests" / "deep" / "a.yaml"
    path.chmod(0o640)
    assert fmt() == (ExitCode.OK, "manifests/deep/a.yaml\n", "")
    assert path.read_text() == ORDERED
    assert path.stat().st_mode & 0o777 == 0o640
    assert fmt() == (ExitCode.OK, "", "")
    assert fmt("--check") == (ExitCode.OK, "", "")
    assert sorted(one.name for one in path.parent.iterdir()) == ["a.yaml"]


def test_check_writes_nothing(fmt: Fmt, tmp_path: Path) -> None:
    """It exits 2, as whenever there are changes; --diff shows them."""
    assert fmt("--check") == (ExitCode.CHANGES, "manifests/deep/a.yaml\n", "")
    out = fmt("--check", "--diff", code=ExitCode.CHANGES).out
    assert out.startswith("--- a/manifests/deep/a.yaml\n+++ b/manifests/deep/a.yaml\n@@ -1,4 +1,4 @@\n")
    assert (tmp_path / "manifests" / "deep" / "a.yaml").read_text() == MIXED


def test_paths(fmt: Fmt, tmp_path: Path) -> None:
    """A file or a folder of manifests, also outside a project, but not one of a project; a byte order mark stays."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.yaml").write_bytes(b"\xef\xbb\xbf" + MIXED.encode())
    (other / "y.yaml").write_text(MIXED)
    assert fmt(str(other / "y.yaml"), code=ExitCode.OK).out.count("\n") == 1
    assert (other / "y.yaml").read_text() == ORDERED
    fmt(str(other), code=ExitCode.OK)
    assert (other / "x.yaml").read_bytes() == b"\xef\xbb\xbf" + ORDERED.encode()
    assert (tmp_path / "manifests" / "deep" / "a.yaml").read_text() == MIXED
    assert "no such file" in fmt(str(tmp_path / "nowhere"), code=ExitCode.USAGE).err
    assert "folder of a project" in fmt(str(tmp_path), code=ExitCode.USAGE).err


def test_what_is_left(fmt: Fmt, tmp_path: Path) -> None:
    """A file that cannot be ordered safely is named, and no reason to fail; the others are ordered."""
    (tmp_path / "manifests" / "odd.yaml").write_text("groups:\n  # whose?\n  - name: b\n  - name: a\n")
    code, out, err = fmt("--check")
    assert (code, out) == (ExitCode.CHANGES, "manifests/deep/a.yaml\n")
    assert "manifests/odd.yaml:3:3: warning: not ordered" in err
    assert fmt()[0] == ExitCode.OK
    assert fmt("--check")[0] == ExitCode.OK


def test_links_and_broken_yaml_are_errors(fmt: Fmt, tmp_path: Path) -> None:
    """No link is followed, or replaced by a file; the others are ordered."""
    outside = tmp_path / "outside.yaml"
    outside.write_text(MIXED)
    (tmp_path / "manifests" / "link.yaml").symlink_to(outside)
    (tmp_path / "manifests" / "broken.yaml").write_text("groups: [")
    code, out, err = fmt()
    assert (code, out) == (ExitCode.ERROR, "manifests/deep/a.yaml\n")
    assert "manifests/link.yaml: error: is a link" in err
    assert "manifests/broken.yaml:2:1: error" in err
    assert outside.read_text() == MIXED
    assert (tmp_path / "manifests" / "link.yaml").is_symlink()


def test_no_file_is_reached_through_a_linked_folder(fmt: Fmt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is given may lead out of the project only where it says so."""
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "a.yaml").write_text(MIXED)
    monkeypatch.chdir(tmp_path)
    Path("linked").symlink_to(outside)
    for path in ("linked", "linked/a.yaml"):
        assert "linked/a.yaml: error: is a link" in fmt(path, code=ExitCode.ERROR).err
    assert (outside / "a.yaml").read_text() == MIXED
    assert fmt(f"../{outside.name}/a.yaml")[0] == ExitCode.OK
    assert (outside / "a.yaml").read_text() == ORDERED
