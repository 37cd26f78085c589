"""What `lmsconf fleet matrix` prints, and the recipes beside it, judged by the schemas of the engines and by rules."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from lmsconf.cli import app, run_command_line
from lmsconf.project.credentials import DIRS

from .engines import IMAGE, merged
from .test_workflows import CI, GITLAB_SCHEMA, SCHEMA, judged, recipe

SCHEMAS = os.environ.get("LMSCONF_KUBERNETES_SCHEMAS", "")
"""A folder with `v1.37.0-local-strict` and so on, as the package kubernetes-validate has it."""


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The document for each engine."""
    documents = {}
    for format in ("github", "gitlab", "argo", "kubernetes"):
        options = ["--shards", "3", "--select", "ring=main,!closed", "--image", IMAGE]
        assert run_command_line(app, ["fleet", "matrix", "--format", format, *options]) == 0
        documents[format] = json.loads(capsys.readouterr().out)
    return documents


@pytest.mark.slow
def test_github_takes_the_matrix(printed: Mapping[str, Any], tmp_path: Path) -> None:
    """With the matrix itself in place of the expression, the workflow fits the JSON Schema of GitHub's workflows."""
    workflow = recipe("github/lmsconf-fleet.yml")
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads it as a flag
    workflow["jobs"]["plan"]["strategy"]["matrix"] = printed["github"]
    (tmp_path / "workflow.json").write_text(json.dumps(workflow))
    judged(*SCHEMA, "vendor.github-workflows", tmp_path / "workflow.json")


@pytest.mark.slow
def test_gitlab_takes_the_child_pipeline(printed: Mapping[str, Any], tmp_path: Path) -> None:
    """Alone, and as the recipe includes it, it fits the JSON Schema of GitLab CI."""
    (tmp_path / "alone.json").write_text(json.dumps(printed["gitlab"]))
    (tmp_path / "both.json").write_text(json.dumps(merged(recipe("gitlab/fleet-shards.yml"), printed["gitlab"])))
    judged(*GITLAB_SCHEMA, tmp_path / "alone.json", tmp_path / "both.json")


@pytest.mark.slow
def test_argo_takes_the_workflow(printed: Mapping[str, Any]) -> None:
    """Models that are generated from Argo's API read it, and have a field for each key."""
    read = pytest.importorskip("hera.workflows.models").Workflow.model_validate(printed["argo"])
    assert json.loads(read.model_dump_json(exclude_none=True, by_alias=True)) == printed["argo"]


@pytest.mark.slow
@pytest.mark.skipif(not SCHEMAS, reason="no schemas of Kubernetes: name their folder in LMSCONF_KUBERNETES_SCHEMAS")
@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_kubernetes_takes_each_object(printed: Mapping[str, Any], version: str) -> None:
    """The Job and the recipes fit the strict JSON Schemas of the first version with all fields, and of a new one."""
    folder = Path(SCHEMAS) / f"v{version}.0-local-strict"
    definitions = json.loads((folder / "_definitions.json").read_text(encoding="utf-8"))
    registry: Registry[Any] = Registry().with_resource("definitions", Resource.from_contents(definitions))
    names = ("kubernetes/drift.yaml", "kubernetes/fleet-collect.yaml", "kubernetes/fleet-volume.yaml")
    accounts = yaml.safe_load_all((CI / "argo" / "fleet-account.yaml").read_text(encoding="utf-8"))
    for thing in (printed["kubernetes"], *map(recipe, names), *accounts):
        group = "core" if "/" not in thing["apiVersion"] else thing["apiVersion"].split("/")[0].split(".")[0]
        reference = f"definitions#/$defs/io.k8s.api.{group}.v1.{thing['kind']}"
        problems = list(Draft202012Validator({"$ref": reference}, registry=registry).iter_errors(thing))
        assert problems == [], thing["kind"]


@pytest.fixture
def pods(printed: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The specifications of the pods in each document, with their containers: one that plans, one that collects."""
    workflow = printed["argo"]["spec"]
    return [
        printed["kubernetes"]["spec"]["template"]["spec"],
        recipe("kubernetes/fleet-collect.yaml")["spec"]["template"]["spec"],
        *(
            {**workflow, "containers": [one["container"]], "volumes": [*workflow["volumes"], *one["volumes"]]}
            for one in workflow["templates"]
            if "container" in one
        ),
    ]


def test_pods_are_bounded(printed: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> None:
    """Each has the image by its digest, limits, and no right or writable folder that it does not need.

    Each Job and Workflow has a time after which it ends, also where no pod can start.
    """
    for thing in (printed["argo"], printed["kubernetes"], recipe("kubernetes/fleet-collect.yaml")):
        assert 0 < thing["spec"]["activeDeadlineSeconds"] <= 6 * 60 * 60
    drift = recipe("kubernetes/drift.yaml")
    model = drift["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (like,) = model["containers"]
    assert drift["metadata"]["namespace"] == "lmsconf"
    assert like["resources"]["limits"].keys() == {"cpu", "memory"}
    assert model["securityContext"]["fsGroup"] == model["securityContext"]["runAsGroup"]
    for pod in (model, *pods):
        (container,) = pod["containers"]
        assert re.search(r"@sha256:[0-9a-f]{64}$", container["image"])
        assert pod["securityContext"] == model["securityContext"]
        assert container["securityContext"] == like["securityContext"]
        assert container["resources"] == like["resources"]
        assert {mount["name"] for mount in container["volumeMounts"]} <= {volume["name"] for volume in pod["volumes"]}
    commands = [pod["containers"][0]["command"][2] for pod in pods]
    ran = [re.findall(r"(?:^|&& )exec lmsconf fleet (plan|collect) ", command) for command in commands]
    assert ran == [["plan"], ["collect"]] * 2
    (mount,), (volume,), (variable,) = like["volumeMounts"], model["volumes"], like["env"]
    assert (mount["name"], mount["readOnly"], volume["secret"]["defaultMode"]) == (volume["name"], True, 0o440)
    assert (variable["name"], variable["value"]) == (DIRS, mount["mountPath"])


def test_only_pods_that_plan_have_tokens(pods: Sequence[Mapping[str, Any]]) -> None:
    """Tokens are files, mounted read-only where LMSCONF_TOKEN_DIRS allows them; no container that collects has them."""
    for pod in pods:
        (container,) = pod["containers"]
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        variables = {one["name"]: one.get("value") for one in container["env"]}
        if " fleet plan " in container["command"][2]:
            (volume,) = [one for one in pod["volumes"] if one["name"] == "tokens"]
            assert volume["secret"] == {"secretName": "lmsconf-tokens", "defaultMode": 0o440}
            assert mounts["tokens"]["readOnly"] is True
            assert mounts["tokens"]["mountPath"] == variables[DIRS]
        else:
            assert ("tokens" in mounts, DIRS in variables) == (False, False)
        assert "envFrom" not in container


def test_plans_of_a_fleet_on_gitlab_are_for_developers(printed: Mapping[str, Any]) -> None:
    """So are the reports; the child pipeline runs for merge requests too, and applies never cut each other short."""
    pipeline = merged(recipe("gitlab/fleet-shards.yml"), printed["gitlab"])
    for name in ("lmsconf-fleet-plan", "collect", "apply"):
        assert (pipeline[name]["artifacts"]["access"], pipeline[name]["artifacts"]["when"]) == ("developer", "always")
    assert pipeline["workflow"]["rules"] == [{"when": "always"}]
    assert (pipeline["apply"]["interruptible"], pipeline["apply"]["resource_group"]) == (False, "lms-apply")


def test_the_account_for_argo_may_only_tell_what_came_of_a_pod() -> None:
    """Its role has the two verbs on the one resource that Argo's executor needs, in its own namespace."""
    account, role, binding = yaml.safe_load_all((CI / "argo" / "fleet-account.yaml").read_text(encoding="utf-8"))
    expected = {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}
    assert (role["kind"], role["rules"]) == ("Role", [expected])
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account["metadata"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
