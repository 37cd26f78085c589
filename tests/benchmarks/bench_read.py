"""Planning 10,000 unchanged resources that are read over loopback HTTP, beside `terraform plan` of as many.

    python tests/benchmarks/bench_read.py --terraform PATH/TO/terraform [--repeat 3]

The server runs in a process of its own; requests are counted in a run that is not timed. Terraform gets 10,000
`terraform_data` resources, its simplest, which needs no network at all. Applying so many takes it many minutes, so one
is applied and its state copied for the others; that the plan finds nothing to change is checked.
"""

import json
import tempfile
from pathlib import Path

from measuring import LMSCONF, TOKEN, Run, figures, in_turn, options, process, ratio, served, tell, verdict
from workload import make_project, values_of

RESOURCES = 10_000


def main() -> None:
    parser = options(__doc__, 3)
    parser.add_argument("--terraform", metavar="PATH", default="terraform", help="the terraform program")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_project(folder / "project", values_of(RESOURCES))
        stage = _terraform_project(folder / "terraform", given.terraform)
        database = folder / "project" / "workspace.db"
        with served(database, folder / "log.jsonl") as server:
            _plan(folder / "project", server.url)
            asked = server.operations()
        with served(database, None) as server:
            ours, theirs = in_turn(
                given.repeat,
                lambda: _plan(folder / "project", server.url),
                lambda: process([given.terraform, *_UNCHANGED], env=_TERRAFORM_ENV, cwd=stage),
            )
    requests = sum(asked.values())
    tell(f"{RESOURCES:,} unchanged resources, medians of {given.repeat} runs in turn")
    for label, runs in (("lmsconf over HTTP", ours), ("terraform plan", theirs)):
        tell(f"  {label:19} {figures(runs)}")
    tell(f"  {requests:,} requests a plan; what the server computes is in the time, not in the computing")
    tell(f"  lmsconf : terraform  {ratio(ours, theirs):.3f}  {verdict(ratio(ours, theirs), 0.3)}")
    tell("  requests by operation: " + ", ".join(f"{name} {count}" for name, count in sorted(asked.items())))


def _plan(project: Path, url: str) -> Run:
    return process([LMSCONF, "-C", str(project), "plan"], env={"LMSCONF_URL": url, "LMSCONF_TOKEN": TOKEN})


_TERRAFORM_ENV = {"TF_CLI_CONFIG_FILE": "/dev/null", "CHECKPOINT_DISABLE": "1"}
_UNCHANGED = ("plan", "-detailed-exitcode", "-input=false", "-no-color")
"""Exits with 2, and so fails here, if there is anything to change."""


def _terraform_project(folder: Path, terraform: str) -> Path:
    """As many unchanged `terraform_data` resources, a block each, as somebody would write different things."""
    folder.mkdir()
    (folder / "main.tf").write_text(_block(0), encoding="utf-8")
    for arguments in (("init", "-no-color"), ("apply", "-auto-approve", "-no-color")):
        process([terraform, *arguments], env=_TERRAFORM_ENV, cwd=folder)
    state_file = folder / "terraform.tfstate"
    state = json.loads(state_file.read_text(encoding="utf-8"))
    state["resources"] = [_copied(state["resources"][0], number) for number in range(RESOURCES)]
    state_file.write_text(json.dumps(state), encoding="utf-8")
    (folder / "main.tf").write_text("".join(map(_block, range(RESOURCES))), encoding="utf-8")
    return folder


def _block(number: int) -> str:
    name, value = f"group_{number}", f"group-{number}"
    return f'resource "terraform_data" "{name}" {{\n  input = {{ name = "{value}", mandatory = true }}\n}}\n'


def _copied(resource: dict[str, object], number: int) -> dict[str, object]:
    """The resource that was applied, as the one with that number."""
    copied = json.loads(json.dumps(resource).replace("group-0", f"group-{number}"))
    copied["name"] = f"group_{number}"
    copied["instances"][0]["attributes"]["id"] = f"00000000-0000-0000-0000-{number:012}"
    return dict(copied)


if __name__ == "__main__":
    main()
