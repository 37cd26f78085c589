"""Completion in a shell: what the scripts of bash, zsh and fish are answered, by the protocol that they speak."""

import json
import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import lmsconf
from texts import text_of

from lmsconf.cli import app, run_command_line
from lmsconf.model.guards import GUARDS

PROJECT = text_of(__file__, "completion_project.yaml")
Values = Callable[..., list[str]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of a service that nobody answers for, with a command for its token."""
    Project(tmp_path).write(text_of(__file__, "completion_manifests.yaml"))
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Values:
    """Asks as a shell does for a line whose last word is being typed; gives the values that it is offered."""

    def offered(line: str, shell: str = "bash") -> list[str]:
        words = shlex.split(line) if line.count("'") % 2 == 0 and line.count('"') % 2 == 0 else line.split(" ")
        words += [""] if line.endswith(" ") and not line.endswith("\\ ") else []
        monkeypatch.setenv("_LMSCONF_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", line.rpartition(" ")[2] if shell == "fish" else str(len(words) - 1))
        with pytest.raises(SystemExit) as ended:
            run_command_line(app, [])
        out, err = capsys.readouterr()
        assert (ended.value.code, err) == (0, "")  # what is written to stderr would stand in the prompt
        if shell == "zsh":
            return out.split("\n")[1::3]
        return [one.removeprefix("plain,") for one in out.split("\n") if one]

    return offered


ADDRESSES = [
    *("content_target/GDPR basics -> everyone", "content_target/GDPR basics -> smart_group/Old hands"),
    *("custom_field/Old", "group/A*", "group/O'Brien", "group/Sales Nordics", "group/Sales: R/D, x"),
]


SALES = ["group/Sales Nordics", "group/Sales: R/D, x"]


@pytest.mark.parametrize("option", ["plan --only", "plan --except", "apply --only", "drift --accept", "graph --only"])
def test_addresses_are_completed(root: Path, values: Values, option: str) -> None:
    """Those of the manifests, also what stands under `absent`; nothing is sent, and no command of a token runs."""
    assert values(f"lmsconf {option} ", "zsh") == ADDRESSES
    assert values(f"lmsconf {option} ", "fish") == ADDRESSES
    assert not (root / "ran").exists()
    assert not (root / ".lmsconf").exists()


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("", ADDRESSES),
        ("group/S", SALES),
        ("'group/S", SALES),
        ('"group/S', SALES),
        ("group/Sales\\ ", SALES[:1]),
        ("groups/A", ["groups/A*"]),
        ("Sal", SALES),
        ("group/Z", []),
    ],
)
@pytest.mark.usefixtures("root")
def test_bash_gets_values_quoted(values: Values, typed: str, names: list[str]) -> None:
    """Bash inserts them as they are, after an open quote too; a section's name stays, and a name alone is found."""
    inserted = values(f"lmsconf plan --only {typed}")
    if typed[:1] in ("'", '"'):
        assert inserted == names
    else:
        assert [shlex.split(one) for one in inserted] == [[name] for name in names]


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
        ("explain group.mem", ["group.members"]),
        ("explain workspaces.to", ["workspaces.token"]),
        ("explain for", ["for_each", *(f"for_each/{code}" for code in ("empty", "taken", "too-many", "unused"))]),
        ("runs ", ["latest"]),
        ("completion ", ["bash", "zsh", "fish"]),
    ],
)
@pytest.mark.usefixtures("root")
def test_other_values_are_completed(values: Values, line: str, offered: list[str]) -> None:
    """Workspaces, audiences, people, content, kinds, guards, topics, keys with their codes, and runs."""
    assert values(f"lmsconf {line}", "zsh") == offered


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: Values, files: Mapping[str, str], line: str
) -> None:
    """A broken project completes to nothing but what needs none."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert set(values(f"lmsconf {line}")) <= {"everyone", "sandbox", "production"}


# The scripts of the shells themselves.


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
TAKES_WORDS = "lmsconf() { printf '%s\\n' \"$@\" > got; }\n"
"""What stands for lmsconf once a line is complete."""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project with one group, whose name would run a command in a shell, and lmsconf in its folder `bin`."""
    Project(tmp_path).write(json.dumps({"groups": [{"name": HOSTILE.removeprefix("group/")}]}))
    program = tmp_path / "bin" / "lmsconf"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lmsconf "$@"\n')
    program.chmod(0o755)
    return tmp_path


def typed_into(shell: list[str], root: Path, *dialogue: tuple[str, bytes]) -> list[str]:
    """Types into an interactive shell, each time until something is shown; gives the words that lmsconf then gets."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        shell,
        cwd=root,
        env=environ(root, TERM="dumb", INPUTRC="/dev/null", HISTFILE="/dev/null", ZDOTDIR=str(root)),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    try:
        for text, awaited in dialogue:
            shown = b""
            os.write(ours, text.encode())
            while awaited not in shown:
                assert select.select([ours], [], [], 60)[0], shown.decode(errors="replace")
                shown += os.read(ours, 65536)
    finally:
        running.kill()
        running.wait()
        os.close(ours)
        os.close(theirs)
    return (root / "got").read_text().splitlines() if (root / "got").exists() else [shown.decode(errors="replace")]


def environ(root: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "HOME": str(root), **more}


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
def test_a_completed_name_runs_nothing(hostile: Path, typed: str, words: list[str]) -> None:
    """Whatever quote is open, bash hands the name over as it is declared; after `$'` nothing is offered."""
    script = lmsconf(hostile, "completion", "bash").out
    (hostile / "rc").write_text(f"{script}\n{TAKES_WORDS}PROMPT_COMMAND='echo prompted'\n")
    line = (f"lmsconf plan --only {typed}\n", b"prompted")
    got = typed_into(["bash", "--noprofile", "--rcfile", "rc", "-i"], hostile, ("", b"prompted"), line)
    assert got == ["plan", "--only", *words]
    assert not (hostile / "pwned").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on the PATH")
def test_fish_gets_names_as_they_are_declared(hostile: Path) -> None:
    """fish reads the script, and offers a name with quotes and a command in it, which it does not run."""
    asks = f"{lmsconf(hostile, 'completion', 'fish').out}\ncomplete -C 'lmsconf plan --only group/x'"
    fish = ["fish", "--no-config", "-c", asks]
    ran = subprocess.run(fish, capture_output=True, text=True, check=True, cwd=hostile, env=environ(hostile))
    assert ran.stdout.splitlines() == [HOSTILE]
    assert not (hostile / "pwned").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh on the PATH")
def test_zsh_inserts_names_quoted(hostile: Path) -> None:
    """An interactive zsh reads the script, inserts the name at a tab, and hands it over as it is declared."""
    (hostile / "_lmsconf").write_text(lmsconf(hostile, "completion", "zsh").out)
    (hostile / ".zshrc").write_text(
        f"path=({shlex.quote(str(hostile / 'bin'))} $path)\nautoload -U compinit; compinit -u -D\nsource ./_lmsconf\n"
        f"PS1='prompted '\nunsetopt zle_bracketed_paste\n{TAKES_WORDS}"
    )
    line = ("lmsconf plan --only group/x\t", b"y ")
    got = typed_into(["zsh", "-i"], hostile, ("", b"prompted"), line, ("\n", b"prompted"))
    assert got == ["plan", "--only", HOSTILE]
    assert not (hostile / "pwned").exists()
