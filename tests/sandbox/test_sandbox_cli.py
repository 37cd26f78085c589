"""`lmsconf sandbox`: what its commands do to files, and what they say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from waiting import HANGS

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.sandbox.faults import Fault, parse_faults
from lmsconf.sandbox.store import Store
from lmsconf.sandbox.synthetic_seed import dump_seed, generate_seed

SEED = "groups:\n  - {name: Coaches}\n"


@pytest.fixture
def lmsconf(tmp_path, monkeypatch, capsys):
    """Runs a command in a folder of its own; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seed.yaml").write_text(SEED, encoding="utf-8")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run_command_line(app, ["sandbox", *arguments])
        return (code, *capsys.readouterr())

    return command


def groups(db: str = "w.db") -> list[str]:
    store = Store(db)
    with store.read_transaction() as repository:
        found = repository.column("SELECT name FROM groups ORDER BY seq")
    store.close()
    return found


def test_a_workspace_is_filled_from_its_seed(lmsconf):
    """`seed` fills an empty workspace from the seed file, and refuses one that is not empty."""
    assert lmsconf("seed", "--db", "w.db", "--seed", "seed.yaml") == (0, "", "w.db is filled from seed.yaml.\n")
    assert groups() == ["Coaches"]
    code, _, said = lmsconf("seed", "--db", "w.db", "--seed", "seed.yaml")
    assert (code, "w.db is not empty" in said) == (1, True)
    assert groups() == ["Coaches"]


def test_a_workspace_is_made_up(lmsconf, tmp_path):
    """Numbers make a workspace up: planted with --db, written as a seed with --out, always the same."""
    sizes = [
        "--users",
        "5",
        "--groups",
        "3",
        "--smart-groups",
        "2",
        "--fields",
        "4",
        "--contents",
        "2",
        "--assignments",
        "4",
    ]
    expected = generate_seed(users=5, groups=3, smart_groups=2, fields=4, contents=2, assignments=4, seed=7)
    assert lmsconf("seed", *sizes, "--seed-number", "7", "--out", "-")[:2] == (0, dump_seed(expected))
    assert lmsconf("seed", *sizes, "--seed-number", "7", "--out", "made.yaml")[0] == 0
    assert (tmp_path / "made.yaml").read_text(encoding="utf-8") == dump_seed(expected)
    assert lmsconf("seed", "--db", "w.db", *sizes, "--seed-number", "7")[0] == 0
    assert groups()[:3] == [group["name"] for group in expected["groups"]]


def test_a_workspace_begins_again(lmsconf, tmp_path):
    """`reset --yes` throws everything away and plants the seed; nothing is left beside the file."""
    lmsconf("seed", "--db", "w.db", "--groups", "3")
    assert lmsconf("reset", "--db", "w.db", "--seed", "seed.yaml", "--yes")[0] == 0
    assert groups() == ["Coaches"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed.yaml", "w.db"]
    assert lmsconf("reset", "--db", "w.db", "--yes")[0] == 0
    assert groups() == []


def test_reset_does_not_guess(lmsconf):
    """Without a terminal and without --yes, `reset` is a wrong command line, and nothing is lost."""
    lmsconf("seed", "--db", "w.db", "--seed", "seed.yaml")
    assert lmsconf("reset", "--db", "w.db")[0] == 64
    assert groups() == ["Coaches"]


def test_a_bad_seed_costs_nothing(lmsconf, tmp_path):
    """A seed that cannot be planted leaves the old workspace as it was."""
    lmsconf("seed", "--db", "w.db", "--seed", "seed.yaml")
    (tmp_path / "bad.yaml").write_text("groups: [{nme: x}]", encoding="utf-8")
    code, _, said = lmsconf("reset", "--db", "w.db", "--seed", "bad.yaml", "--yes")
    assert code == 1
    assert "bad.yaml: error: groups[0]: unknown key 'nme'" in said
    assert groups() == ["Coaches"]
    assert not (tmp_path / "w.db.new").exists()


def test_reset_takes_no_other_file(lmsconf, tmp_path):
    """A file that is no database is never thrown away."""
    code, _, said = lmsconf("reset", "--db", "seed.yaml", "--yes")
    assert (code, "seed.yaml is not a sandbox workspace" in said) == (1, True)
    assert (tmp_path / "seed.yaml").read_text(encoding="utf-8") == SEED


def test_a_workspace_in_memory_cannot_be_reset(lmsconf):
    """`reset` and `seed` need a file to keep what they do."""
    assert lmsconf("reset", "--seed", "seed.yaml", "--yes")[0] == 64
    assert lmsconf("seed", "--seed", "seed.yaml")[0] == 64


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["serve", "--port", "70000", "--db", "w.db"], 64),
        (["serve", "--latency", "-1", "--db", "w.db"], 64),
        (["serve", "--log", "missing/log", "--db", "w.db"], 1),
        (["serve", "--seed", "missing.yaml"], 1),
        (["serve", "--faults", "missing.yaml", "--db", "w.db"], 1),
        (["seed", "--seed", "seed.yaml", "--users", "3", "--db", "w.db"], 64),
        (["seed", "--out", "made.yaml", "--db", "w.db"], 64),
        (["seed", "--fields", "11", "--db", "w.db"], 64),
    ],
)
def test_wrong_commands_do_nothing(lmsconf, tmp_path, arguments, code):
    """What makes no sense is an error before anything is written."""
    assert lmsconf(*arguments)[0] == code
    assert [path.name for path in tmp_path.iterdir()] == ["seed.yaml"]


def test_a_server_says_how_to_use_it(lmsconf, tmp_path):
    """`serve` says URL, token and how to stop, answers there, logs JSON lines, and ends well when interrupted.

    The token is a new one each time; that of the environment, which may be that of a real workspace, is not taken.
    """
    program = [sys.executable, "-c", "from lmsconf.cli import main; main()", "sandbox", "serve"]
    options = ["--port", "0", "--db", "w.db", "--seed", "seed.yaml", "--log", "log.jsonl"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LMSCONF_")}
    environment["LMSCONF_TOKEN"] = "real"
    with subprocess.Popen(
        [*program, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        lines = [server.stdout.readline() for _ in range(5)]
        url = re.search(r"http://127\.0\.0\.1:\d+", lines[0])[0]
        token = lines[2].split()[-1]
        refused = [
            httpx.get(f"{url}/groups", headers={"authorization": f"Bearer {one}"}) for one in ("sandbox", "real")
        ]
        answer = httpx.get(f"{url}/groups", headers={"authorization": f"Bearer {token}"})
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=HANGS)
    assert lines[1:] == [
        "  data   w.db\n",
        f"  token  {token}\n",
        f"  try    LMSCONF_URL={url} LMSCONF_TOKEN={token} lmsconf plan\n",
        "Stop it with Ctrl-C.\n",
    ]
    assert len(token) >= 32
    assert [one.status_code for one in refused] == [401, 401]
    assert (answer.json(), server.returncode, said) == (
        {"groups": [{"groupId": "g-1", "name": "Coaches"}]},
        0,
        "\nStopped.\n",
    )
    *_, logged = (tmp_path / "log.jsonl").read_text().splitlines()
    assert json.loads(logged) == {
        "method": "GET",
        "path": "/groups",
        "operation": "manual-groups.list",
        "status": 200,
        "writes": False,
    }


def test_a_server_goes_wrong_on_script(lmsconf, tmp_path):
    """`serve --faults FILE` lets go wrong what the script says."""
    (tmp_path / "faults.yaml").write_text("- {status: 429, headers: {retry-after: 1}}\n", encoding="utf-8")
    program = [sys.executable, "-c", "from lmsconf.cli import main; main()", "sandbox", "serve"]
    options = ["--port", "0", "--db", "w.db", "--seed", "seed.yaml", "--faults", "faults.yaml", "--token", "sandbox"]
    with subprocess.Popen([*program, *options], stdout=subprocess.PIPE, text=True) as server:
        url = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())[0]
        headers = {"authorization": "Bearer sandbox"}
        answers = [httpx.get(f"{url}/groups", headers=headers).status_code for _ in range(2)]
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=HANGS)
    assert answers == [429, 200]


def test_the_help_tells_how_to_write_a_script_of_faults(lmsconf, tmp_path):
    """The script that `serve --help` shows can be read, and the text names every key that a script can have."""
    _, help, _ = lmsconf("serve", "--help")
    entries = [line.strip() for line in help.splitlines() if line.strip().startswith("- {")]
    (tmp_path / "faults.yaml").write_text("\n".join(entries), encoding="utf-8")
    assert [fault.operation for fault in parse_faults(tmp_path / "faults.yaml")] == [
        "users.*",
        "*",
        "users.list",
    ]
    assert [one for one in Fault.__struct_fields__ if not re.search(rf"\b{one}\b", help)] == []


def test_the_project_names_the_workspace(lmsconf, tmp_path):
    """Without --db and --seed it is the project's selected workspace, with its seed; a remote one is refused."""
    (tmp_path / "lmsconf.yaml").write_text(
        "workspaces:\n"
        '  sandbox: {url: "sandbox:project.db", seed: seed.yaml}\n'
        '  production: {url: "https://lms.example/api"}\n'
        "default_workspace: sandbox\n",
        encoding="utf-8",
    )
    assert lmsconf("seed")[0] == 0
    assert groups("project.db") == ["Coaches"]
    assert lmsconf("reset", "--yes")[0] == 0
    assert run_command_line(app, ["--workspace", "production", "sandbox", "reset", "--yes"]) == 64
    assert groups("project.db") == ["Coaches"]
