"""A command starts quickly: it imports no library and no package that it does not use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NEVER = {"httpcore", "h11", "anyio", "asyncio", "jsonschema", "deepdiff", "jinja2", "rich"}
OF_OTHERS = {
    *("lmsconf.doctor", "lmsconf.apply", "lmsconf.api.sdk", "lmsconf.render.html", "lmsconf.render.markdown"),
    *("lmsconf.render.junit", "lmsconf.render.code_review", "lmsconf.support.git"),
    *("lmsconf.planner.drift", "lmsconf.workspace.plan_with_base", "lmsconf.manifest.schema_messages"),
}
OF_PLANS = {"lmsconf.planner.plan", "lmsconf.api.client", "lmsconf.sandbox", "lmsconf.render", "sqlite3", "httpx"}


@pytest.mark.parametrize(
    ("command", "unused"), [("plan", NEVER | OF_OTHERS), ("validate", NEVER | OF_OTHERS | OF_PLANS)]
)
def test_the_quickstart_imports_only_what_it_uses(command: str, unused: set[str], tmp_path: Path) -> None:
    """A plan on the embedded workspace opens no connection; checking manifests needs no plan.

    Of differences deepdiff is needed, which imports much more: the manifests are applied before.
    """
    project = tmp_path / "quickstart"
    shutil.copytree(ROOT / "examples" / "quickstart", project, ignore=shutil.ignore_patterns("*.db*", ".lmsconf"))
    _ran(project, "apply", "--auto-approve")
    ran = _ran(project, command)
    assert unused & set(ran.stderr.splitlines()[-1].split()) == set()
    assert ran.stdout


def _ran(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command, which tells last on stderr which modules are imported."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import lmsconf.__main__\n"
        "from lmsconf.cli import main\n"
        f"try: main(['-C', {str(project)!r}, *{arguments!r}])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    return subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
