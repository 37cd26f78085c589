"""A stand-in for `kubectl`, as far as examples/ci/kubernetes/fleet.sh uses it: a Job has run when it is applied.

`KUBECTL_STATE` is a folder: in `kubectl.json` is what the cluster has, in others are its volumes.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import yaml
from engines import Machine, run_job

ROOT = Path(os.environ["KUBECTL_STATE"])
KINDS = {"job": "Job", "pvc": "PersistentVolumeClaim"}
STATE = json.loads((ROOT / "kubectl.json").read_text(encoding="utf-8"))


def apply(text: str) -> str:
    """Make a claim, or run a Job to its end; an object that there is stays as it is."""
    thing = yaml.safe_load(text)
    name = f"{thing['kind']}/{thing['metadata']['name']}"
    if name in STATE["objects"]:
        return f"{name} unchanged\n"
    if thing["kind"] == "PersistentVolumeClaim":
        (ROOT / thing["metadata"]["name"]).mkdir()
        STATE["objects"][name] = {}
        return f"{name} created\n"
    claims = {claim.partition("/")[2]: ROOT / claim.partition("/")[2] for claim in STATE["objects"] if "Claim" in claim}
    count = len(list(ROOT.iterdir()))
    machine = Machine(ROOT, Path(STATE["project"]), {"lmsconf-tokens": {"oslo": "t"}}, count=1000 * count)
    failed = any(codes[-1] for codes in run_job(machine, thing, claims).values())
    conditions = "FailureTarget Failed" if failed else "SuccessCriteriaMet Complete"
    STATE["objects"][name] = {"conditions": conditions, "log": machine.log}
    return f"{name} created\n"


def answer(words: list[str]) -> str:
    objects = STATE["objects"]
    match words:
        case ["apply", "-f", "-"]:
            return apply(sys.stdin.read())
        case ["apply", "-f", path]:
            return apply(Path(path).read_text(encoding="utf-8"))
        case ["delete", "job" | "pvc" as kind, *names, "--ignore-not-found"]:
            for name in names:
                if objects.pop(f"{KINDS[kind]}/{name}", None) is not None and kind == "pvc":
                    shutil.rmtree(ROOT / name)
            return ""
        case ["get", "job", name, "-o", "jsonpath={.status.conditions[*].type}"]:
            return str(objects[f"Job/{name}"]["conditions"])
        case ["logs", name]:
            return str(objects[name.replace("job/", "Job/")]["log"])
    raise SystemExit(f"kubectl: {words}")


if __name__ == "__main__":
    assert sys.argv[1:3] == ["-n", "lmsconf"]
    sys.stdout.write(answer(sys.argv[3:]))
    (ROOT / "kubectl.json").write_text(json.dumps(STATE), encoding="utf-8")
