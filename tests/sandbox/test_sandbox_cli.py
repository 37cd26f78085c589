"""`lmsconf sandbox`: what its commands do to files, and what they say."""

import json
import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
import yaml
from texts import listed_cases
from waiting import HANGS

from lmsconf.cli import app, run_command_line
from lmsconf.errors import ProblemsFound
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript, parse_faults
from lmsconf.sandbox.seed import dump_seed
from lmsconf.sandbox.store import Store
from lmsconf.sandbox.synthetic_seed import generate_seed

SEED = "groups:\n  - {name: Coaches}\n"


@pytest.fixture
def lmsconf(tmp_path, monkeypatch, capsys):
    """Runs a command in a folder of its own; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seed.yaml").write_text(SEED, encoding="utf-8")

    def command(*arguments: str) -> tuple[int, str, str]:
        return (run_command_line(app, ["sandbox", *arguments]), *capsys.readouterr())

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
    numbers = {"users": 5, "groups": 3, "smart_groups": 2, "fields": 4, "contents": 2, "assignments": 4}
    sizes = [f"--{name.replace('_', '-')}={number}" for name, number in numbers.items()]
    expected = generate_seed(**numbers, seed=7)
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


def test_a_bad_seed_costs_nothing(lmsconf, tmp_path):
    """A seed that cannot be planted leaves the old workspace as it was."""
    lmsconf("seed", "--db", "w.db", "--seed", "seed.yaml")
    (tmp_path / "bad.yaml").write_text("groups: [{nme: x}]", encoding="utf-8")
    code, _, said = lmsconf("reset", "--db", "w.db", "--seed", "bad.yaml", "--yes")
    assert code == 1
    assert "bad.yaml: error: groups[0]: Object contains unknown field `nme`; known: id, managers" in said
    assert groups() == ["Coaches"]
    assert not (tmp_path / "w.db.new").exists()


def test_reset_takes_no_other_file(lmsconf, tmp_path):
    """A file that is no database is never thrown away."""
    code, _, said = lmsconf("reset", "--db", "seed.yaml", "--yes")
    assert (code, "seed.yaml is not a sandbox workspace" in said) == (1, True)
    assert (tmp_path / "seed.yaml").read_text(encoding="utf-8") == SEED
    code, _, said = lmsconf("reset", "--db", "seed.yaml/w.db", "--yes")
    assert (code, "seed.yaml is not a folder" in said) == (1, True)


@listed_cases("arguments", "code")
def test_wrong_commands_do_nothing(lmsconf, tmp_path, arguments, code):
    """What makes no sense is an error before anything is written."""
    assert lmsconf(*arguments)[0] == code
    assert [path.name for path in tmp_path.iterdir()] == ["seed.yaml"]


PROGRAM = (
    sys.executable,
    "-c",
    "from lmsconf.cli import main; main()",
    "sandbox",
    "serve",
    "--port",
    "0",
    "--db",
    "w.db",
)


def groups_seen(url: str, token: str) -> httpx.Response:
    return httpx.get(f"{url}/groups", headers={"authorization": f"Bearer {token}"})


def test_a_server_says_how_to_use_it(lmsconf, tmp_path):
    """`serve` says URL, token and how to stop, answers there, logs JSON lines, and ends well when interrupted.

    With `--faults FILE` it lets go wrong what the script says.
    """
    (tmp_path / "faults.yaml").write_text("- {status: 429, headers: {retry-after: 1}}\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LMSCONF_")}
    with subprocess.Popen(
        [*PROGRAM, "--seed", "seed.yaml", "--log", "log.jsonl", "--faults", "faults.yaml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"LMSCONF_TOKEN": "real"},
    ) as server:
        lines = [server.stdout.readline() for _ in range(5)]
        url = re.search(r"http://127\.0\.0\.1:\d+", lines[0])[0]
        token = lines[2].split()[-1]
        refused = groups_seen(url, token)
        assert [groups_seen(url, one).status_code for one in ("sandbox", "real")] == [401, 401]
        answer = groups_seen(url, token)
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=HANGS)
    assert lines[1:] == [
        "  data   w.db\n",
        f"  token  {token}\n",
        f"  try    LMSCONF_URL={url} LMSCONF_TOKEN={token} lmsconf plan\n",
        "Stop it with Ctrl-C.\n",
    ]
    assert len(token) >= 32
    assert refused.status_code == 429
    assert answer.json() == {"groups": [{"groupId": "g-1", "name": "Coaches"}]}
    assert (server.returncode, said) == (0, "\nStopped.\n")
    *_, logged = (tmp_path / "log.jsonl").read_text().splitlines()
    assert json.loads(logged) == {
        "method": "GET",
        "path": "/groups",
        "operation": "manual-groups.list",
        "status": 200,
        "writes": False,
    }


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


# Faults on script: what a client meets when the network or the service has a bad day.


def test_an_answer_is_late(open_workspace):
    """A delay comes before the answer, which is otherwise right."""
    answer = open_workspace(faults=FaultScript(Fault(delay=0.05))).call("GET", "/groups")
    assert answer.status_code == 200
    assert answer.elapsed.total_seconds() >= 0.05


def test_faults_by_chance_are_the_same_each_time(open_workspace):
    """`chance` strikes some requests and spares others, the same ones for the same seed, others for another."""

    def struck(seed: int) -> list[int]:
        api = open_workspace(faults=FaultScript(Fault(status=500, chance=0.3, seed=seed, times=ALWAYS)))
        return [api.call("GET", "/groups").status_code for _ in range(60)]

    assert struck(1) == struck(1) != struck(2)
    assert 5 < struck(1).count(500) < 35


@listed_cases("text", "messages")
def test_a_wrong_script_is_refused(tmp_path, text, messages):
    """Everything that is wrong in a script is told together, with the file."""
    path = tmp_path / "faults.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProblemsFound) as found:
        FaultScript(*parse_faults(path))
    told = [problem.message for problem in found.value.problems]
    assert len(told) == len(messages)
    assert all(one.startswith(message) for one, message in zip(told, messages, strict=True))
    assert {str(problem.source) for problem in found.value.problems} == {str(path)}


def test_the_shortest_way_to_every_key(tmp_path):
    """A file can say all that a fault can be."""
    path = tmp_path / "faults.yaml"
    path.write_text(
        "- {operation: a.b, times: 2, status: 500, headers: {A: b}, delay: 1.5, cut: true, lose_answer: true, "
        "spoil: truncated, stale: true, after: 3, calls: [1, 2], chance: 0.5, seed: 4}",
        encoding="utf-8",
    )
    (said,) = yaml.safe_load(path.read_text(encoding="utf-8"))
    (fault,) = parse_faults(path)
    assert fault == Fault(**{**said, "headers": {"a": "b"}, "calls": frozenset((1, 2))})
    assert all(getattr(fault, key) != getattr(Fault(), key) for key in Fault.__struct_fields__)
