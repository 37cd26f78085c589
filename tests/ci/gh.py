"""A stand-in for GitHub's `gh`, as far as the workflows use it: what is on GitHub is one JSON file.

Each request needs a permission, as there; one that the job was not given is refused. `GITHUB_STATE` names the file.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

PLACE = Path(os.environ["GITHUB_STATE"])
STATE: dict[str, Any] = json.loads(PLACE.read_text(encoding="utf-8"))
ME = "github-actions[bot]"


def refuse(text: str) -> NoReturn:
    sys.exit(f"gh: {text}")


def needs(permission: str, level: str) -> None:
    """Refuses what the job may not do, and notes what it did."""
    if not os.environ.get("GH_TOKEN"):
        refuse("set the GH_TOKEN environment variable")
    if STATE["permissions"].get(permission) not in (level, "write"):
        refuse(f"HTTP 403: Resource not accessible by integration ({permission}: {level})")
    STATE["used"][permission] = "write" if STATE["used"].get(permission) == "write" else level


def answer(method: str, path: str, fields: dict[str, str]) -> object:
    """What GitHub's API answers."""
    assert path.startswith("repos/acme/lms/")
    match method, re.split(r"[/?]", path)[3:]:
        case "GET", ["issues", _, "comments"]:
            needs("pull-requests", "read")
            return STATE["comments"]
        case "POST", ["issues", _, "comments"]:
            needs("pull-requests", "write")
            STATE["comments"].append({"id": len(STATE["comments"]) + 1, "user": {"login": ME}, "body": fields["body"]})
        case "PATCH", ["issues", "comments", id]:
            needs("pull-requests", "write")
            (found,) = (one for one in STATE["comments"] if one["id"] == int(id))
            found["body"] = fields["body"]
        case "POST", ["statuses", commit]:
            needs("statuses", "write")
            assert len(fields["description"]) <= 140
            STATE["statuses"].setdefault(commit, []).insert(0, {**fields, "creator": {"login": ME}})
        case "GET", ["commits", commit, "statuses"]:
            needs("statuses", "read")
            return STATE["statuses"].get(commit, [])
        case "GET", ["commits", commit, "pulls"]:
            needs("pull-requests", "read")
            return STATE["pulls"].get(commit, [])
        case "GET", ["actions", "runs", id]:
            needs("actions", "read")
            return STATE["runs"][id]
        case "GET", ["actions", "artifacts", query] if query.startswith("name="):
            needs("actions", "read")
            name = query.removeprefix("name=")
            return {"artifacts": [one for one in reversed(STATE["artifacts"]) if one["name"] == name]}
        case "GET", ["issues", query] if found := re.fullmatch(r"labels=([\w-]+)&state=open", query):
            needs("issues", "read")
            return [one for one in STATE["issues"] if one["state"] == "open" and found[1] in one["labels"]]
        case _:
            refuse(f"HTTP 404: {method} {path}")
    return {}


def filtered(value: object, program: str | None) -> str:
    """The value through jq, texts without quotes."""
    if program is None:
        return json.dumps(value)
    line = ["jq", "-r", program]
    return subprocess.run(line, input=json.dumps(value), stdout=subprocess.PIPE, text=True, check=True).stdout


def api(words: argparse.Namespace) -> str:
    fields = dict(pair.split("=", 1) for pair in words.raw_field)
    for pair in words.field:
        name, _, value = pair.partition("=")
        fields[name] = Path(value[1:]).read_text(encoding="utf-8") if value.startswith("@") else value
    method = words.method or ("POST" if fields else "GET")
    found = answer(method, words.path, fields)
    return "" if words.silent else filtered(found, words.jq)


def run_download(words: argparse.Namespace) -> str:
    needs("actions", "read")
    assert os.environ["GH_REPO"] == "acme/lms"
    (found,) = (one for one in STATE["artifacts"] if str(one["workflow_run"]["id"]) == words.run)
    assert found["name"] == words.name
    shutil.copytree(found["folder"], ".", dirs_exist_ok=True)
    return ""


def issue(words: argparse.Namespace) -> str:
    needs("issues", "write")
    assert os.environ["GH_REPO"] == "acme/lms"
    issues = STATE["issues"]
    body = Path(words.body_file).read_text(encoding="utf-8") if words.body_file else ""
    assert len(body) <= 65_536
    if words.verb == "create":
        assert words.label in STATE["labels"]
        made = {"number": len(issues) + 1, "state": "open", "labels": [words.label], "user": {"login": ME}}
        issues.append({**made, "title": words.title, "body": body})
        return ""
    (found,) = (one for one in issues if one["number"] == int(words.number))
    found |= {"body": body} if words.verb == "edit" else {"state": "closed"}
    return ""


def label(words: argparse.Namespace) -> str:
    needs("issues", "write")
    assert words.force
    STATE["labels"].append(words.name)
    return ""


def command_line() -> argparse.ArgumentParser:
    """The words of gh that the workflows use."""
    parser = argparse.ArgumentParser("gh", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    for name, does, arguments, options, flags in (
        ("api", api, ["path"], ["method", "jq"], ["paginate", "silent"]),
        ("run", run_download, ["verb", "run"], ["name"], []),
        ("issue", issue, ["verb", "number"], ["label", "body-file", "title", "comment"], []),
        ("label", label, ["verb", "name"], ["description"], ["force"]),
    ):
        command = commands.add_parser(name, allow_abbrev=False)
        command.set_defaults(does=does)
        for argument in arguments:
            command.add_argument(argument, nargs="?" if argument == "number" else None)
        for option in options:
            command.add_argument(f"--{option}")
        for flag in flags:
            command.add_argument(f"--{flag}", action="store_true")
        if name == "api":
            command.add_argument("--field", action="append", default=[])
            command.add_argument("--raw-field", action="append", default=[])
    return parser


if __name__ == "__main__":
    words = command_line().parse_args()
    try:
        sys.stdout.write(words.does(words))
    finally:
        PLACE.write_text(json.dumps(STATE), encoding="utf-8")
