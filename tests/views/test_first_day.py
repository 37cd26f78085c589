"""Nearly two hundred mistakes of a first day: each message names what is wrong, where it is, and what to do next.

The mistakes are in texts/first_day.json, those beside it that are more than a line; the messages in
tests/golden/first_day.txt. To write it: `pytest tests/views/test_first_day.py --update-golden`, without -n.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from flow.shell import Ran, lmsconf
from manifest.cases import zipped
from msgspec.structs import replace
from texts import text_of

from lmsconf.documents import plan_file
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox

GOLDEN = Path(__file__).parent.parent / "golden" / "first_day.txt"
PROJECT, SEED, MANIFEST = (text_of(__file__, f"first_day_{name}.yaml") for name in ("project", "seed", "manifest"))
LEADERS = "groups: [{name: Leaders, members: {file: leaders.csv, column: email}}]\n"
SAVE = ("plan --out plan.json",)


@dataclass(frozen=True)
class Mistake:
    """A mistake: what somebody has written or set, and the command that they run then.

    before: commands that they have run. edit: what they have made of the plan file that one of these saved.
    """

    title: str
    command: str = "validate"
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = "."
    stdout: str = ""
    without: str = ""
    before: tuple[str, ...] = ()
    edit: Callable[[str], str] | None = None

    def write(self, root: Path) -> None:
        """The project with the mistake, below a folder of its own."""
        files = {"lmsconf.yaml": PROJECT, "workspace.yaml": SEED, "manifests/all.yaml": MANIFEST, **self.files}
        for name, text in files.items():
            if name != self.without:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
        for command in self.before:
            lmsconf(root, *shlex.split(command), code=0)
        if self.edit is not None:
            plan = root / "plan.json"
            plan.write_text(self.edit(plan.read_text()))

    @property
    def line(self) -> str:
        """The command line as it is typed."""
        env = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*env, "lmsconf", self.command, *([f"> {self.stdout}"] if self.stdout else [])])


def manifest(title: str, old: str, new: str, command: str = "validate") -> Mistake:
    """A mistake in one place of the manifest."""
    assert old in MANIFEST, old
    return Mistake(title, command, {"manifests/all.yaml": MANIFEST.replace(old, new, 1)})


def added(title: str, text: str) -> Mistake:
    """A mistake in a second manifest, beside one that is right."""
    return Mistake(title, files={"manifests/new.yaml": text})


def setting(title: str, old: str, new: str) -> Mistake:
    """A mistake in one place of the project file."""
    assert old in PROJECT, old
    return Mistake(title, files={"lmsconf.yaml": PROJECT.replace(old, new, 1)})


def sheet(title: str, table: str, encoding: str = "utf-8") -> Mistake:
    """A mistake in a CSV file of people."""
    return Mistake(title, files={"manifests/new.yaml": LEADERS, "manifests/leaders.csv": table.encode(encoding)})


def served(title: str, url: str, more: Mapping[str, str] | None = None) -> Mistake:
    """A mistake on the way to a service on the network."""
    return Mistake(title, "plan", env={"LMSCONF_URL": url, "LMSCONF_TOKEN": "a-token-of-the-first-day"} | (more or {}))


def typed(line: str) -> Mistake:
    """A command line of another tool, or one that lacks a word."""
    return Mistake(f"lmsconf {line}", line)


FORMS: Mapping[str, Callable[..., Mistake]] = {
    "manifest": manifest,
    "added": added,
    "setting": setting,
    "sheet": sheet,
    "served": served,
    "typed": typed,
    "command": Mistake,
}


def expired(text: str) -> str:
    """A plan file whose time is over."""
    return plan_file.dumps(replace(plan_file.loads(text), expires_at="2026-01-01T00:00:00Z"))


PLAN_FILE, NEW, ALL = "apply plan.json", "manifests/new.yaml", "manifests/all.yaml"
UMLAUT = "groups: [{name: Ä}]\n"
WORKBOOK = zipped({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": "<workbook/>"})
STORED = {"lmsconf.yaml": PROJECT.replace('"sandbox:"', '"sandbox:workspace.db"')}
MISTAKES = (
    *(FORMS[form](*row) for form, rows in json.loads(text_of(__file__, "first_day.json")).items() for row in rows),
    Mistake("a manifest in UTF-16", files={NEW: UMLAUT.encode("utf-16")}),
    Mistake("a manifest in Latin-1", files={NEW: UMLAUT.encode("latin-1")}),
    Mistake(
        "CRLF and a byte order mark, which are none",
        files={ALL: b"\xef\xbb\xbf" + MANIFEST.replace("\n", "\r\n").encode()},
    ),
    Mistake("a manifest named .txt", files={"manifests/all.txt": MANIFEST}, without=ALL),
    Mistake("an empty manifest", files={ALL: "# groups will follow\n"}),
    Mistake("no folder of manifests", without=ALL),
    Mistake("an Excel workbook named .csv", files={NEW: LEADERS, "manifests/leaders.csv": WORKBOOK}),
    Mistake("a CSV file that is not there", files={NEW: LEADERS}),
    Mistake("a CSV file that is a folder", files={NEW: LEADERS, "manifests/leaders.csv/readme": ""}),
    Mistake("LMSCONF_URL and --workspace", "--workspace staging plan", env={"LMSCONF_URL": "sandbox:"}),
    Mistake("an unknown workspace in the environment", "plan", env={"LMSCONF_WORKSPACE": "prodution"}),
    Mistake("a folder without a project", "plan", {"elsewhere/readme": ""}, folder="elsewhere", without="lmsconf.yaml"),
    Mistake("a project file with another ending", "plan", {"lmsconf.yml": PROJECT}, without="lmsconf.yaml"),
    Mistake("a project in a folder of another", "plan", {"nested/lmsconf.yaml": PROJECT}, folder="nested"),
    Mistake("a full disk behind stdout", "plan", stdout="/dev/full"),
    Mistake(
        "an edited plan file",
        PLAN_FILE,
        before=SAVE,
        edit=lambda text: text.replace("Safety officers", "Fire officers"),
    ),
    Mistake("a plan file cut short", PLAN_FILE, before=SAVE, edit=lambda text: text[:400]),
    Mistake("a plan file of yesterday", PLAN_FILE, before=SAVE, edit=expired),
    Mistake("a plan file of another workspace", f"--workspace staging {PLAN_FILE}", before=SAVE),
    Mistake("a plan file applied twice", PLAN_FILE, STORED, before=(*SAVE, PLAN_FILE)),
    Mistake("an empty plan file", PLAN_FILE, {"plan.json": ""}),
    Mistake("what plan prints as plan file", "apply plan.txt", before=("plan --output plan.txt",)),
    Mistake("a snapshot as plan file", "apply snapshot.json", before=("snapshot snapshot.json",)),
)


def sections() -> dict[str, str]:
    """The golden file: title → command line, exit code and message."""
    return dict(part.split("\n", 1) for part in GOLDEN.read_text(encoding="utf-8").split("=== ")[1:])


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's proxies and certificates."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A workspace on the network."""
    sandbox = Sandbox(":memory:")
    with serve(sandbox) as server:
        yield server.url
    sandbox.close_workspace()


def made(mistake: Mistake, root: Path, url: str) -> str:
    """The command line, the exit code, and all that is written to the terminal."""
    mistake.write(root)
    secured = url.replace("http", "https")
    env = {name: value.replace("SERVED", url).replace("SECURED", secured) for name, value in mistake.env.items()}
    with ExitStack() as streams:
        kept = ("stdin", "stdout", "stderr")
        if mistake.stdout:
            kept = ("stdin", "stderr")
            streams.enter_context(redirect_stdout(streams.enter_context(Path(mistake.stdout).open("w"))))
        ran = lmsconf(root / mistake.folder, *shlex.split(mistake.command), env=env, streams=kept)
    return f"$ {mistake.line}\n{shown(ran, root, url)}[exit {ran.code}]\n\n"


def shown(ran: Ran, root: Path, url: str) -> str:
    """Its output without what differs from run to run: folders, ports, digests, times and tries."""
    text = re.sub(r"Topics are .*\.", "Topics are ….", ran.out + ran.err)
    text = text.replace(str(root), "/home/anna/lms").replace(url.partition("://")[2], "HOST:PORT")
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", re.sub(r" \(tried \d+ times\)", "", text))
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)


@pytest.mark.sampled
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_explained(mistake: Mistake, tmp_path: Path, url: str, request: pytest.FixtureRequest) -> None:
    """The message is the one of the golden file, which was read by eyes that had not seen the code."""
    text = made(mistake, tmp_path, url)
    if request.config.getoption("--update-golden", default=False):
        known = {**sections(), mistake.title: text}
        GOLDEN.write_text("".join(f"=== {title}\n{section}" for title, section in known.items()))
    assert sections()[mistake.title] == text


def test_each_message_says_what_and_what_next() -> None:
    """Each mistake that is refused has an error with its code, and below it what to do; none is a traceback."""
    written = sections()
    assert sorted(written) == sorted(mistake.title for mistake in MISTAKES)
    assert len(written) >= 100
    for title, text in written.items():
        errors = re.findall(r"^.*\berror: .*", text, re.MULTILINE)
        if errors:
            assert all(re.search(r" \[[\w/-]+\]$", error) for error in errors), title
            assert re.search(r" \[[\w/-]+\]\n(  .*\n)+", text), title
        assert "[exit 0]" in text or errors, title
        assert "Traceback" not in text
