"""Completion in a shell: what the scripts of bash, zsh and fish are answered, by the protocol that they speak."""

import json
import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from flow.shell import lmsconf

from lmsconf.cli import app, run_command_line
from lmsconf.model.guards import GUARDS

PROJECT = """
workspaces:
  sandbox: {url: "sandbox:workspace.db"}
  production: {url: "https://lms.example/api", token: {command: [touch, ran]}}
default_workspace: production
"""
MANIFESTS = """
groups: [{name: Sales Nordics}, {name: "Sales: R/D, x"}, {name: "A*"}, {name: "O'Brien", members: [bo@x.example]}]
content_targets: [{content: GDPR basics, assign_to: [everyone, {smart_group: Old hands}]}]
absent: {custom_fields: [Old]}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of a service that nobody answers for, with a command for its token."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text(MANIFESTS)
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(shell: str, line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a shell is answered for a line whose last word is being typed; all of it on stdout."""
    words = shlex.split(line) if line.count("'") % 2 == 0 and line.count('"') % 2 == 0 else line.split(" ")
    words += [""] if line.endswith(" ") and not line.endswith("\\ ") else []
    asked = {"_LMSCONF_COMPLETE": f"{shell}_complete", "COMP_WORDS": line}
    asked["COMP_CWORD"] = (line.rpartition(" ")[2]) if shell == "fish" else str(len(words) - 1)
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    out = TextIOWrapper(BytesIO(), encoding="utf-8")
    with redirect_stdout(out), pytest.raises(SystemExit) as ended:
        run_command_line(app, [])
    out.flush()
    assert ended.value.code == 0
    return bytes(out.buffer.getvalue()).decode()  # type: ignore[attr-defined]  # a buffer of bytes


def values(line: str, monkeypatch: pytest.MonkeyPatch, shell: str = "bash") -> list[str]:
    """The values that a shell is offered."""
    told = answer(shell, line, monkeypatch)
    if shell == "zsh":
        return told.split("\n")[1::3]
    return [one.removeprefix("plain,") for one in told.split("\n") if one]


ADDRESSES = [
    *("content_target/GDPR basics -> everyone", "content_target/GDPR basics -> smart_group/Old hands"),
    *("custom_field/Old", "group/A*", "group/O'Brien", "group/Sales Nordics", "group/Sales: R/D, x"),
]


@pytest.mark.parametrize("option", ["plan --only", "plan --except", "apply --only", "drift --accept", "graph --only"])
def test_addresses_are_completed(root: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """Those of the manifests, also what stands under `absent`; nothing is sent, and no command of a token runs."""
    assert values(f"lmsconf {option} ", monkeypatch, "zsh") == ADDRESSES
    assert values(f"lmsconf {option} ", monkeypatch, "fish") == ADDRESSES
    assert not (root / "ran").exists()
    assert not (root / ".lmsconf").exists()


@pytest.mark.parametrize(
    ("typed", "inserted"),
    [
        ("", [shlex.quote(one) for one in ADDRESSES]),
        ("group/S", ["group/Sales\\ Nordics", "group/Sales\\:\\ R/D,\\ x"]),
        ("'group/S", ["group/Sales Nordics", "group/Sales: R/D, x"]),
        ('"group/S', ["group/Sales Nordics", "group/Sales: R/D, x"]),
        ("group/Sales\\ ", ["group/Sales\\ Nordics"]),
        ("groups/A", ["groups/A\\*"]),
        ("Sal", ["group/Sales\\ Nordics", "group/Sales\\:\\ R/D,\\ x"]),
        ("group/Z", []),
    ],
)
def test_bash_gets_values_quoted(root: Path, monkeypatch: pytest.MonkeyPatch, typed: str, inserted: list[str]) -> None:
    """Bash inserts them as they are, after an open quote too; a section's name stays, and a name alone is found."""
    found = values(f"lmsconf plan --only {typed}", monkeypatch)
    if typed[:1] in ("'", '"'):
        assert found == inserted
    else:
        assert [shlex.split(one) for one in found] == [shlex.split(one) for one in inserted]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("--workspace ", ["sandbox", "production"]),
        ("plan --workspace p", ["production"]),
        ("audience ", ["everyone", *ADDRESSES[3:], "smart_group/Old hands"]),
        ("access b", ["bo@x.example"]),
        ("access bo@x.example ", ["GDPR basics"]),
        ("export --kind smart", ["smart_groups"]),
        ("apply --allow ", [f"{guard}=" for guard in GUARDS]),
        ("plan --trust-project url,t", ["url,token"]),
        ("help gu", ["guards"]),
        ("runs ", ["latest"]),
        ("completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_other_values_are_completed(root: Path, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]) -> None:
    """Workspaces, audiences, people, content, kinds, guards, topics and runs."""
    assert values(f"lmsconf {line}", monkeypatch, "zsh") == offered


@pytest.mark.parametrize(
    "files",
    [
        {"lmsconf.yaml": "workspaces: [\n"},
        {"lmsconf.yaml": "workspaces: {}\n"},
        {"lmsconf.yaml": PROJECT, "manifests": "a file"},
        {},
    ],
)
@pytest.mark.parametrize(
    "line", ["plan --only ", "--workspace ", "audience ", "plam --only ", "-C nowhere plan --only "]
)
def test_a_shell_is_told_no_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: Mapping[str, str],
    line: str,
) -> None:
    """A broken project completes to nothing: what is written would stand in the prompt."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    told = answer("bash", f"lmsconf {line}", monkeypatch)
    assert [one for one in told.split() if not one.startswith("plain,") or "group" in one] == []
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_bash_reads_the_script(tmp_path: Path) -> None:
    """The script defines a function that puts each value into COMPREPLY whole, and leaves no space after a `=`."""
    script = lmsconf(tmp_path, "completion", "bash").out
    answered = r"lmsconf() { printf 'plain,a\\ b, c*\nplain,removals=\n'; }"
    asks = f'{answered}; env() {{ shift 4; "$@"; }}; compopt() {{ echo "$@"; }}'
    shown = 'COMP_WORDS=(lmsconf x); COMP_CWORD=1; _lmsconf_completion lmsconf; printf "%s|" "${COMPREPLY[@]}"'
    ran = subprocess.run(["bash", "-c", f"{script}\n{asks}\n{shown}"], capture_output=True, text=True, check=True)
    assert ran.stdout == "-o nospace\na\\ b, c*|removals=|"


HOSTILE = "group/x'`touch pwned`';y"


def on_bash(root: Path, typed: str) -> list[str]:
    """Types a line into an interactive bash on a pseudo-terminal; gives the words that lmsconf would then get."""
    program = root / "bin" / "lmsconf"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lmsconf "$@"\n')
    program.chmod(0o755)
    (root / "rc").write_text(
        f"PATH={shlex.quote(str(program.parent))}:$PATH\n{lmsconf(root, 'completion', 'bash').out}\n"
        "lmsconf() { printf '%s\\n' \"$@\" > got; }\nPROMPT_COMMAND='echo prompted'\n"
    )
    ours, theirs = pty.openpty()
    terminal = os.ttyname(theirs)
    shell = subprocess.Popen(
        # A process without a terminal that opens one gets it as its own.
        ["bash", "-c", f"exec <{terminal} >{terminal} 2>&1 bash --noprofile --rcfile rc -i"],
        cwd=root,
        env={**os.environ, "TERM": "dumb", "INPUTRC": "/dev/null", "HISTFILE": "/dev/null"},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    shown = b""
    try:
        for text, awaited in (("", 1), (f"{typed}\n", 2)):
            os.write(ours, text.encode())
            while shown.count(b"prompted") < awaited:
                assert select.select([ours], [], [], 60)[0], shown.decode(errors="replace")
                shown += os.read(ours, 65536)
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(theirs)
    return (root / "got").read_text().splitlines() if (root / "got").exists() else [shown.decode(errors="replace")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        pytest.param("group/x\t", [HOSTILE], id="no-quote"),
        pytest.param("'group/x\t", [HOSTILE], id="single"),
        pytest.param('"group/x\t', [HOSTILE], id="double"),
        pytest.param("$'group/x\t'", ["group/x"], id="dollar"),
        pytest.param("group/x 'z\x02\x02\x02\t\x05'", [HOSTILE, "z"], id="quote-after-the-cursor"),
    ],
)
def test_a_completed_name_runs_nothing(root: Path, typed: str, words: list[str]) -> None:
    """Whatever quote is open, bash hands the name over as it is declared; after `$'` nothing is offered."""
    (root / "manifests" / "all.yaml").write_text(f'groups: [{{name: "{HOSTILE.removeprefix("group/")}"}}]\n')
    got = on_bash(root, f"lmsconf plan --only {typed}")
    assert not (root / "pwned").exists()
    assert got == ["plan", "--only", *words]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on the PATH")
def test_fish_gets_names_as_they_are_declared(tmp_path: Path) -> None:
    """fish reads the script, and offers a name with quotes and a command in it, which it does not run."""
    asks = "complete -C 'lmsconf plan --only group/x'"
    ran = subprocess.run(
        ["fish", "--no-config", "-c", f"{lmsconf(hostile_project(tmp_path), 'completion', 'fish').out}\n{asks}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)},
    )
    assert ran.stdout.splitlines() == [HOSTILE]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh on the PATH")
def test_zsh_inserts_names_quoted(tmp_path: Path) -> None:
    """An interactive zsh reads the script, inserts the name at a tab, and hands it over as it is declared."""
    (hostile_project(tmp_path) / "_lmsconf").write_text(lmsconf(tmp_path, "completion", "zsh").out)
    (tmp_path / ".zshrc").write_text(
        f"path=({shlex.quote(str(tmp_path / 'bin'))} $path)\nautoload -U compinit; compinit -u -D\nsource ./_lmsconf\n"
        "PS1='prompted '\nunsetopt zle_bracketed_paste\nlmsconf() { printf '%s\\n' \"$@\" > got }\n"
    )
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-i"],
        cwd=tmp_path,
        env={**os.environ, "TERM": "dumb", "ZDOTDIR": str(tmp_path), "HOME": str(tmp_path)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    shown = b""
    try:
        for text, awaited in (("", b"prompted"), ("lmsconf plan --only group/x\t", b"y "), ("\n", b"prompted")):
            shown = b""
            os.write(ours, text.encode())
            while awaited not in shown:
                assert select.select([ours], [], [], 60)[0], shown.decode(errors="replace")
                shown += os.read(ours, 65536)
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(theirs)
    assert (tmp_path / "got").read_text().splitlines() == ["plan", "--only", HOSTILE]
    assert not (tmp_path / "pwned").exists()


def hostile_project(root: Path) -> Path:
    """A project with one group, whose name would run a command in a shell, and lmsconf in its folder `bin`."""
    (root / "lmsconf.yaml").write_text('workspaces: {sandbox: {url: "sandbox:"}}\n')
    (root / "manifests").mkdir()
    (root / "manifests" / "a.yaml").write_text(f"groups: [{{name: {json.dumps(HOSTILE.removeprefix('group/'))}}}]\n")
    (root / "bin").mkdir()
    program = root / "bin" / "lmsconf"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lmsconf "$@"\n')
    program.chmod(0o755)
    return root
