"""Flags, environment and project file → Settings."""

import json
import os
import sys
import traceback
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from manifest.cases import Case, cases, shown
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode, LmsconfError, ProblemsFound, Severity, SourceLocation, UsageError
from lmsconf.model.guards import GUARDS, Consent, GuardLimit, GuardLimits
from lmsconf.project.credentials import TokenUnavailable
from lmsconf.project.settings import Settings, load_settings
from lmsconf.workspace.connection import Connection

CANARY = "c4n4ry-t0ken"
TODAY = date(2026, 7, 1)
TWO = """\
workspaces:
  sandbox: {url: "sandbox:data/workspace.db", seed: workspace.yaml}
  production: {url: "https://lms.example/api", token: {env: LMSCONF_PRODUCTION_TOKEN}}
default_workspace: sandbox
"""


def settings(root: Path, text: str, workspace: str | None = None, **environ: str) -> Settings:
    """The settings of a project with that file, whose folder is made if it is missing."""
    return load_settings(placed(root, text), workspace, environ, today=TODAY)


def placed(root: Path, text: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "lmsconf.yaml").write_text(text)
    return root


def one(more: str) -> str:
    """A project file with one workspace called w."""
    return f'workspaces: {{w: {{url: "sandbox:"}}}}\n{more}'


def test_smallest_project(tmp_path: Path) -> None:
    """One workspace is enough: it is chosen, nothing is owned, and the guards are on."""
    found = settings(tmp_path, one(""))
    assert (found.workspace.name, found.workspace.embedded, found.workspace.database) == ("w", True, None)
    assert found.manifests == tmp_path / "manifests"
    assert (found.policy.ownership, found.policy.leave_alone, found.policy.consents) == ({}, (), ())
    assert found.policy.guards == GuardLimits().with_limits(
        {
            "deletes": GuardLimit(count=5, share=0.1),
            "removals": GuardLimit(count=50, share=0.1),
            "recreates": GuardLimit(count=0),
        }
    )
    assert (found.policy.workspace, found.policy.today, found.policy.timezone) == ("w", TODAY, None)
    assert (found.policy.settle, found.dialect, found.variables, found.problems) == (30.0, {}, {}, ())


def test_whole_project(tmp_path: Path) -> None:
    """Every key of the project file arrives where planning looks for it."""
    found = settings(tmp_path, text_of(__file__, "whole.yaml"))
    policy = found.policy
    assert found.manifests == tmp_path / "conf"
    assert (policy.timezone, policy.timezone_name) == (ZoneInfo("Europe/Stockholm"), "Europe/Stockholm")
    owned = {"group": ("LMS *", "!LMS test*"), "smart_group": ("all",), "content_target": ("declared_content",)}
    assert policy.ownership == owned
    assert policy.leave_alone == ("group/UI *",)
    assert policy.guards == GuardLimits(protect=(("group/All staff",),)).with_limits(
        {
            "deletes": GuardLimit(count=7, share=0.1),
            "removals": GuardLimit(count=50, share=0.05),
            "recreates": None,
            "people": GuardLimit(count=None, share=0.1),
            "mandatory": GuardLimit(count=500, share=None),
            "updates": GuardLimit(count=4, share=0.25),
        }
    )
    said = {"reason": "Contractors leave", "until": date(2026, 7, 7), "source": SourceLocation("lmsconf.yaml", 10, 9)}
    assert policy.consents == (Consent(guard="removals", number=214, **said),)
    assert policy.skip_unknown is True
    assert found.policy.settle == 0.5
    assert found.dialect == {"manual-groups.rename.name": "newName", "paging.limit": 50}
    assert found.variables == {"region": "Nordics", "year": "2026", "version": "1.10"}
    assert found.workspaces == ("sandbox", "production")


def test_workspace_goes_further_than_the_project(tmp_path: Path) -> None:
    """What the chosen workspace says is added to what the project says, or takes its place; protection stays."""
    text = text_of(__file__, "workspaces.yaml")
    found = settings(tmp_path, text, "test")
    assert found.policy.ownership == {"group": ("all",), "smart_group": ("all",)}
    assert found.policy.guards == GuardLimits(protect=(("group/A",),)).with_limits(dict.fromkeys(GUARDS))
    assert [(one.guard, one.number) for one in found.policy.consents] == [("removals", 2), ("deletes", 1)]
    assert (found.dialect, found.variables) == ({"a": "x", "b": "y"}, {"a": "1", "b": "2"})
    other = settings(tmp_path, text, "other").policy
    assert other.guards.limits["deletes"] == GuardLimit(count=9, share=0.2)
    assert other.guards.protect == (("group/A",), ("group/B",))
    assert other.settings_json()["protect"] == ["group/A", "group/B"]


def test_consent_of_the_past(tmp_path: Path) -> None:
    """A consent holds before its date; from that day on it is ignored, with a note."""
    found = settings(tmp_path, one("allow: [{removals: 1, until: 2026-07-01}, {removals: 2, until: 2026-07-02}]\n"))
    assert [one.number for one in found.policy.consents] == [2]
    (note,) = found.problems
    assert (note.severity, note.code) == (Severity.NOTE, "project/consent-expired")
    assert note.source == SourceLocation("lmsconf.yaml", 2, 9)


def test_unknown_workspace(tmp_path: Path) -> None:
    """A workspace that is not there is a wrong command line, or a wrong environment, with the nearest name."""
    with pytest.raises(UsageError) as flag:
        settings(tmp_path, TWO, "prodution")
    assert (flag.value.exit, flag.value.hint) == (ExitCode.USAGE, 'Did you mean "production"?')
    with pytest.raises(ProblemsFound) as variable:
        settings(tmp_path, TWO, LMSCONF_WORKSPACE="prodution")
    assert (variable.value.exit, variable.value.problems[0].hint) == (ExitCode.ERROR, 'Did you mean "production"?')


def test_url_from_the_environment(tmp_path: Path) -> None:
    """LMSCONF_URL is a workspace of its own: no seed and no token of the file, only LMSCONF_TOKEN."""
    text = TWO + "guards: {deletes: {count: 9}}\n"
    found = settings(tmp_path, text, LMSCONF_URL="https://other.example", LMSCONF_PRODUCTION_TOKEN=CANARY)
    workspace = found.workspace
    assert (workspace.name, workspace.url, workspace.seed) == ("env", "https://other.example", None)
    with pytest.raises(TokenUnavailable, match="LMSCONF_TOKEN"):
        secret(found)
    assert found.policy.guards.limits["deletes"] == GuardLimit(count=9, share=0.1)
    assert secret(settings(tmp_path, text, LMSCONF_URL="https://other.example", LMSCONF_TOKEN=CANARY)) == CANARY


def test_url_and_another_choice(tmp_path: Path) -> None:
    """LMSCONF_URL beside --workspace or LMSCONF_WORKSPACE is refused: one of the two is a mistake."""
    with pytest.raises(UsageError, match="LMSCONF_URL and --workspace both select"):
        settings(tmp_path, TWO, "sandbox", LMSCONF_URL="https://other.example")
    with pytest.raises(UsageError, match="LMSCONF_URL and LMSCONF_WORKSPACE both select"):
        settings(tmp_path, TWO, LMSCONF_URL="https://other.example", LMSCONF_WORKSPACE="sandbox")


def test_no_project_file(tmp_path: Path) -> None:
    """Without a project file the error says how to make one, also when the environment names a workspace."""
    for environ in ({}, {"LMSCONF_URL": "https://lms.example"}):
        with pytest.raises(ProblemsFound) as raised:
            load_settings(tmp_path, None, environ)
        (problem,) = raised.value.problems
        assert problem.message == f"there is no lmsconf.yaml in {tmp_path}"
        assert problem.hint == "Run `lmsconf init` to create a project, or go to the project (with -C)."
    (tmp_path / "lmsconf.yml").touch()
    with pytest.raises(ProblemsFound) as raised:
        load_settings(tmp_path, None, {})
    assert raised.value.problems[0].hint == "Rename lmsconf.yml to lmsconf.yaml."
    with pytest.raises(UsageError):
        load_settings(tmp_path / "missing", None, {})


def test_a_project_is_looked_for_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the top of the repository, else to the home folder, and no further."""
    repository = placed(tmp_path, one("")) / "repository"
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    home = {"HOME": str(tmp_path)}
    assert load_settings(None, None, home).root == tmp_path
    for environ in ({}, {"HOME": str(repository)}, {"HOME": "/nowhere"}):
        with pytest.raises(ProblemsFound):
            load_settings(None, None, environ)
    initialised(repository)
    with pytest.raises(ProblemsFound):
        load_settings(None, None, home)
    placed(repository, one(""))
    assert load_settings(None, None, {}).root == repository
    placed(below, one(""))
    assert load_settings(None, None, {}).root == Path()


def initialised(folder: Path) -> None:
    """What git and lmsconf know a repository by."""
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").touch()


def test_no_project_of_others_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that everybody may write to, or that is another user's, is used only where -C names it."""
    shared = placed(tmp_path / "shared", one(""))
    (shared / "mine").mkdir()
    home = {"HOME": str(tmp_path)}
    for folder in (shared / "mine", shared):
        monkeypatch.chdir(folder)
        shared.chmod(0o1777)
        with pytest.raises(LmsconfError, match="writable by everybody") as raised:
            load_settings(None, None, home)
        assert raised.value.hint == f"If you trust it, pass its folder: -C {shared}"
        assert load_settings(shared, None, home).workspace.name == "w"
        shared.chmod(0o755)
        assert load_settings(None, None, home).workspace.name == "w"
    if os.geteuid() == 0:
        os.chown(shared, 4711, 4711)
        with pytest.raises(LmsconfError, match="belongs to another user"):
            load_settings(None, None, home)


def test_a_link_does_not_lead_around_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parents of a folder are those of the real one, also where a link in a trusted folder leads there."""
    shared, trusted = (placed(tmp_path / name, one("")) for name in ("shared", "trusted"))
    (shared / "mine").mkdir()
    shared.chmod(0o1777)
    (trusted / "link").symlink_to(shared / "mine")
    monkeypatch.chdir(trusted / "link")
    with pytest.raises(LmsconfError, match="writable by everybody"):
        load_settings(None, None, {"HOME": str(tmp_path)})
    (shared / "lmsconf.yaml").unlink()
    with pytest.raises(ProblemsFound, match=r"there is no lmsconf.yaml in .*/shared/mine"):
        load_settings(None, None, {"HOME": str(tmp_path)})


def test_root_uses_no_project_of_a_user_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with sudo: in a user's folder, below it, and in a repository of theirs. A user may use what root made."""
    if os.geteuid() != 0:
        pytest.skip("only root may give folders away")
    user = placed(tmp_path / "user", one(""))
    (user / "below").mkdir()
    initialised(user)
    os.chown(user, 4711, 4711)
    for folder in (user / "below", user):
        monkeypatch.chdir(folder)
        with pytest.raises(LmsconfError, match="belongs to another user"):
            load_settings(None, None, {"HOME": str(tmp_path), "SUDO_UID": "4711"})
    for owner in (4711, 0):
        os.chown(user, owner, owner)
        os.seteuid(4711)
        try:
            assert load_settings(None, None, {}).root == Path()
        finally:
            os.seteuid(0)


def test_a_folder_below_one_that_may_not_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folders above cannot be inspected, the search ends; the working directory itself is looked at."""
    # It imports what reading takes, which the other user may not be able to.
    inner = settings(tmp_path, one("")).root / "closed" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    inner.parent.chmod(0)
    home, user = {"HOME": str(tmp_path)}, os.geteuid()
    if user == 0:
        os.chown(inner, 4711, 4711)
        os.seteuid(4711)
    try:
        with pytest.raises(ProblemsFound, match=r"there is no lmsconf\.yaml"):
            load_settings(None, None, home)
        placed(Path(), one(""))
        assert load_settings(None, None, home).root == Path()
        Path().chmod(0o777)
        with pytest.raises(LmsconfError, match="writable by everybody"):
            load_settings(None, None, home)
    finally:
        os.seteuid(user)
        inner.parent.chmod(0o700)


def with_token(token: str) -> str:
    """A project file with one workspace, whose token comes from there."""
    return f'workspaces: {{p: {{url: "https://lms.example", token: {token}}}}}\n'


def secret(found: Settings) -> str:
    """The token of the workspace, as it is looked up when it is needed."""
    assert found.workspace.token is not None
    return found.workspace.token.secret().reveal()


def test_token_from_the_environment(tmp_path: Path) -> None:
    """A token may come from the variable that the file names; LMSCONF_TOKEN takes its place."""
    text = with_token("{env: LMSCONF_P}")
    assert secret(settings(tmp_path, text, LMSCONF_P=CANARY)) == CANARY
    assert secret(settings(tmp_path, text, LMSCONF_P=CANARY * 2, LMSCONF_TOKEN=CANARY)) == CANARY


def test_token_from_a_file(tmp_path: Path) -> None:
    """A token may be what a file holds, without the line break at its end; that others can read it is a warning."""
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(f"{CANARY}\n")
    found = settings(tmp_path, with_token("{file: token}"))
    assert found.problems == ()
    assert secret(found) == CANARY
    path.chmod(0o640)
    (warning,) = settings(tmp_path, with_token("{file: token}")).problems
    assert (warning.code, warning.severity) == ("token/readable", Severity.WARNING)
    assert warning.hint == f"chmod 600 {path}"


ALLOWED = {"LMSCONF_TOKEN_COMMANDS": "allow"}


def test_token_from_a_command(tmp_path: Path) -> None:
    """A command is run when the token is needed, and not before; in the project's folder if it names a file there."""
    (tmp_path / "say.py").write_text(f"open('ran', 'w').close(); print('{CANARY}')")
    found = settings(tmp_path, with_token(f'{{command: ["{sys.executable}", say.py]}}'), **ALLOWED)
    assert not (tmp_path / "ran").exists()
    assert secret(found) == CANARY
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("words", [f"['{sys.executable}', -m, say]", "[make, -s, say]"])
def test_a_command_finds_nothing_of_a_branch(words: str, tmp_path: Path) -> None:
    """A command that names no file of the project does not run in it, where programs find modules and makefiles."""
    found = settings(tmp_path, with_token(f"{{command: {words}}}"), **ALLOWED)
    (tmp_path / "say.py").write_text(f"print('{CANARY}')")
    (tmp_path / "Makefile").write_text(f"say:\n\techo {CANARY}\n")
    with pytest.raises(LmsconfError, match="gave no token"):
        secret(found)


class Asked(list[str]):
    """Hears of each command that may run, and gives always the same answer."""

    def __init__(self, answer: bool = True) -> None:
        super().__init__()
        self._answer = answer

    def __call__(self, command: str) -> bool:
        self.append(command)
        return self._answer


def test_a_label_chooses_no_program_that_nobody_allowed(tmp_path: Path) -> None:
    """A program named by a variable is allowed as it is expanded; the other words are allowed as they are written."""
    asked = Asked()
    for tool in ("true", "false", "true"):
        labels = f"token: {{command: ['$(tool)', '$(key)']}}, labels: {{tool: '{tool}', key: k}}"
        placed(tmp_path, f"workspaces: {{p: {{url: 'https://lms.example', {labels}}}}}\n")
        found = load_settings(tmp_path, None, {"HOME": str(tmp_path / "home")}, today=TODAY, ask=asked)
        with pytest.raises(LmsconfError):
            secret(found)
    assert asked == ["true '$(key)'", "false '$(key)'"]


@pytest.mark.parametrize("content", ["", "{"])
def test_damaged_approvals_are_told(content: str, tmp_path: Path) -> None:
    """An empty file is none that was written: nobody is asked again as if nothing had been allowed."""
    file = tmp_path / "lmsconf" / "token-commands.json"
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text(content)
    found = settings(tmp_path, with_token("{command: ['true']}"), XDG_STATE_HOME=str(tmp_path))
    with pytest.raises(LmsconfError, match=r"token-commands\.json is damaged"):
        secret(found)


@listed_cases("token", "told")
def test_no_token(tmp_path: Path, token: str, told: str) -> None:
    """A token that cannot be had is an error when it is needed, which says where it was looked for."""
    for name, text in (("empty", ""), ("several", f"{CANARY}\n{CANARY}\n")):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(text)
    found = settings(tmp_path, with_token(token), **ALLOWED)
    with pytest.raises(LmsconfError) as raised:
        secret(found)
    assert raised.value.message.endswith(told)
    assert raised.value.hint
    assert CANARY not in "".join(traceback.format_exception(raised.value))


def test_settings_never_show_the_token(tmp_path: Path) -> None:
    """Neither repr nor str of settings, token or secret holds the token."""
    found = settings(tmp_path, with_token("{env: LMSCONF_P}"), LMSCONF_P=CANARY)
    assert found.workspace.token is not None
    for value in (found, found.workspace, found.workspace.token, found.workspace.token.secret()):
        assert CANARY not in f"{value!r} {value}"


def test_a_token_comes_only_from_where_the_environment_lets_it(tmp_path: Path) -> None:
    """A project file names variables of lmsconf and files of the project; any other place stands in the environment."""
    root, vault = tmp_path / "lms", tmp_path / "vault"
    (root / ".git").mkdir(parents=True)
    vault.mkdir()
    for file in (root / "key", vault / "key", root / ".git" / "config"):
        file.write_text(CANARY)
    (root / "link").symlink_to(vault / "key")
    outside = ("{file: ../vault/key}", f'{{file: "{vault}/key"}}', "{file: link}", "{file: lmsconf.yaml/../link}")
    variables = ("{env: AWS_SECRET_ACCESS_KEY}", "{env: LMSCONF_PLAN_KEY}", "{env: lmsconf_token}")
    for said in (*outside, *variables, "{file: .git/config}", "{file: ~/key}"):
        found = settings(root, with_token(said), AWS_SECRET_ACCESS_KEY=CANARY, LMSCONF_PLAN_KEY=CANARY)
        with pytest.raises(LmsconfError) as raised:
            secret(found)
        assert raised.value.code == "token/refused", said
        assert CANARY not in f"{raised.value.message} {raised.value.hint}"
    for said in outside[:3]:
        assert secret(settings(root, with_token(said), LMSCONF_TOKEN_DIRS=f"/nowhere:{vault}")) == CANARY
    listed = {"LMSCONF_TOKEN_ENVS": "OTHER,AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY": CANARY}
    assert secret(settings(root, with_token(variables[0]), **listed)) == CANARY


def test_a_command_runs_only_where_somebody_allowed_it(tmp_path: Path) -> None:
    """The first time it is shown and asked for; a yes is kept for this project and these words, and for these files."""
    root, home = tmp_path / "lms", tmp_path / "home"
    root.mkdir()
    (root / "say.sh").write_text(f"echo {CANARY}")
    said = "{command: [sh, say.sh]}"

    def asked(ask: Asked | None, of: str = said, at: Path = root) -> str:
        placed(at, with_token(of))
        return secret(load_settings(at, None, {"HOME": str(home)}, today=TODAY, ask=ask))

    def refused(of: str = said, at: Path = root) -> None:
        with pytest.raises(LmsconfError, match="not allowed"):
            asked(None, of, at)

    no, yes = Asked(False), Asked()
    for answer in (None, no):
        with pytest.raises(LmsconfError, match="token's command"):
            asked(answer)
    assert asked(yes) == asked(None) == CANARY
    assert no == yes == ["sh say.sh"]
    (kept,) = (home / ".local" / "state" / "lmsconf").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    refused("{command: [sh, say.sh, more]}")
    refused(at=tmp_path / "other")
    (root / "say.sh").write_text("echo other")
    refused()
    assert asked(yes) == "other"
    document = json.loads(kept.read_text())
    for other in (document | {"format": document["format"] + "x"}, [document]):
        kept.write_text(json.dumps(other))
        refused()
    kept.write_text(json.dumps(document))
    kept.chmod(0o666)
    refused()


@listed_cases("words", "times")
def test_a_yes_to_a_command_that_names_the_projects_folder_is_not_kept(
    words: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the files that it names are compared, and another one may run; one that names a file alone is kept."""
    monkeypatch.setenv("HOME", str(tmp_path))
    root, asked = tmp_path / "lms", Asked()
    command = json.dumps(["sh", "-c", words.replace("ROOT", str(root))])
    placed(root, with_token(f"{{command: {command}}}"))
    (root / "say.sh").write_text(f"echo {CANARY}")
    for _ in range(2):
        secret(load_settings(root, None, {"HOME": str(tmp_path)}, today=TODAY, ask=asked))
    assert len(asked) == times


def test_a_yes_outside_the_project_is_none_for_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that leads into the project later lets any file of it run, so that it is asked for again."""
    said = with_token("{command: [sh, -c, 'sh $PLACE/s*.sh']}")
    root, vault = (placed(tmp_path / name, said) for name in ("lms", "vault"))
    for folder in (root, vault):
        (folder / "say.sh").write_text(f"echo {CANARY}")
    for folder, ask in ((vault, Asked()), (vault, None), (root, None)):
        monkeypatch.setenv("PLACE", str(folder))
        found = load_settings(root, None, {"HOME": str(tmp_path)}, today=TODAY, ask=ask)
        with pytest.raises(LmsconfError, match="not allowed") if folder == root else nullcontext():
            assert secret(found) == CANARY


@listed_cases("allowed", "url", "goes")
def test_a_token_goes_only_to_hosts_that_are_allowed(tmp_path: Path, allowed: str | None, url: str, goes: bool) -> None:
    """LMSCONF_ALLOWED_HOSTS names them, at any port or at one; nothing is looked up or sent for any other."""
    environ = {} if allowed is None else {"LMSCONF_ALLOWED_HOSTS": allowed}
    for of in ({"LMSCONF_URL": url}, {}):
        found = settings(tmp_path, f'workspaces: {{w: {{url: "{url}", token: {{env: LMSCONF_X}}}}}}\n', **environ, **of)
        with Connection(found) as connection, pytest.raises(LmsconfError) as raised:
            connection.worker_pool(1)
        assert raised.value.code == ("token/missing" if goes else "url/host")


@listed_cases("said")
def test_sandbox_files_stay_inside(tmp_path: Path, said: str) -> None:
    """The database and the seed of a sandbox lie in the project, all links followed."""
    (tmp_path / "lms").mkdir()
    (tmp_path / "lms" / "out").symlink_to(tmp_path)
    with pytest.raises(ProblemsFound) as raised:
        settings(tmp_path / "lms", f"workspaces: {{w: {{{said}}}}}\n")
    assert [problem.code for problem in raised.value.problems] == ["project/outside"]


def test_a_linked_project_file_is_refused(tmp_path: Path) -> None:
    """Its text would stand in messages, whatever it is the text of."""
    (tmp_path / "key").write_text(f"-----BEGIN: KEY-----\n{CANARY}: [")
    (tmp_path / "lms").mkdir()
    (tmp_path / "lms" / "lmsconf.yaml").symlink_to(tmp_path / "key")
    with pytest.raises(ProblemsFound) as raised:
        load_settings(tmp_path / "lms", None, {})
    assert [problem.code for problem in raised.value.problems] == ["project/link"]


# Malformed project files: what is said of each, word by word.


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("malformed.txt")), ids=lambda case: case.title)
def test_malformed_project_file(case: Case, tmp_path: Path) -> None:
    """A malformed project file is told about at file, line and column, with the reason and the way out."""
    with pytest.raises(ProblemsFound) as raised:
        settings(tmp_path, case.text)
    assert shown(raised.value.problems) == case.told
    assert "s3cr3t" not in case.told
