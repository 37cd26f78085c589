"""Nearly two hundred mistakes of a first day with lmsconf, each as its files and the command line that is typed."""

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from flow.shell import lmsconf
from msgspec.structs import replace

from lmsconf.documents import plan_file

PROJECT = """\
workspaces:
  sandbox: {url: "sandbox:", seed: workspace.yaml}
  staging: {url: "sandbox:", seed: workspace.yaml}
  production: {url: "https://lms.invalid/api", token: {env: LMSCONF_TOKEN}}
default_workspace: sandbox
timezone: Europe/Stockholm
vars: {region: Nordics}
"""
SEED = """\
people:
  - {email: anna.berg@acme.example, first_name: Anna, last_name: Berg, answers: {Country: SE}, admin: true}
  - {email: bo.ek@acme.example, first_name: Bo, last_name: Ek, answers: {Country: "NO"}}
custom_fields: [{name: Country, type: CHOICE, choices: [SE, "NO", FI]}]
groups: [{name: Book club, members: [bo.ek@acme.example]}]
content: [{name: Fire safety}, {name: GDPR basics}]
content_targets: [{content: Fire safety, assign_to: [everyone]}]
"""
MANIFEST = """\
custom_fields:
  - {name: Country, type: CHOICE, choices: [SE, "NO", FI]}
groups:
  - name: Safety officers
    managers: [anna.berg@acme.example]
    members: [bo.ek@acme.example]
smart_groups:
  - name: Nordics
    conditions: [{field: Country, choices: [SE, "NO"]}]
content_targets:
  - content: Fire safety
    assign_to: [{group: Safety officers}]
"""
LEADERS = "groups: [{name: Leaders, members: {file: leaders.csv, column: email}}]\n"
VALIDATE, PLAN = ("validate",), ("plan",)
Prepare = Callable[[Path], object]


@dataclass(frozen=True)
class Mistake:
    """A mistake: what somebody has written or set, and the command that they run then."""

    title: str
    command: tuple[str, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = "."
    stdout: str = ""
    without: tuple[str, ...] = ()
    prepare: Prepare = lambda root: None

    def write(self, root: Path) -> None:
        """The project with the mistake, below a folder of its own."""
        files = {"lmsconf.yaml": PROJECT, "workspace.yaml": SEED, "manifests/all.yaml": MANIFEST, **self.files}
        for name, text in files.items():
            if name not in self.without:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.prepare(root)


def manifest(title: str, old: str, new: str, command: tuple[str, ...] = VALIDATE) -> Mistake:
    """A mistake in one place of the manifest."""
    assert old in MANIFEST, old
    return Mistake(title, command, {"manifests/all.yaml": MANIFEST.replace(old, new, 1)})


def added(title: str, text: str, command: tuple[str, ...] = VALIDATE) -> Mistake:
    """A mistake in a second manifest, beside one that is right."""
    return Mistake(title, command, {"manifests/new.yaml": text})


def setting(title: str, old: str, new: str, command: tuple[str, ...] = VALIDATE) -> Mistake:
    """A mistake in one place of the project file."""
    assert old in PROJECT, old
    return Mistake(title, command, {"lmsconf.yaml": PROJECT.replace(old, new, 1)})


def sheet(title: str, table: str | bytes) -> Mistake:
    """A mistake in a CSV file of people."""
    return Mistake(title, VALIDATE, {"manifests/new.yaml": LEADERS, "manifests/leaders.csv": table})


def served(title: str, url: str, **more: str) -> Mistake:
    """A mistake on the way to a service on the network."""
    env = {"LMSCONF_URL": url, "LMSCONF_TOKEN": "a-token-of-the-first-day", **more}
    return Mistake(title, PLAN, env={name: value for name, value in env.items() if value is not None})


def workbook() -> bytes:
    """The beginning of an Excel workbook, which is a ZIP archive."""
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return data.getvalue()


def save_plan(root: Path) -> None:
    """A plan file, as `plan --out` saves it."""
    assert lmsconf(root, "plan", "--out", "plan.json").code == 0


def edit_plan(root: Path) -> None:
    """A plan file in which somebody changed a name."""
    save_plan(root)
    path = root / "plan.json"
    path.write_text(path.read_text().replace("Safety officers", "Fire officers"))


def cut_plan(root: Path) -> None:
    """A plan file of which only the first half was copied."""
    save_plan(root)
    path = root / "plan.json"
    path.write_text(path.read_text()[:400])


def apply_plan(root: Path) -> None:
    """A plan file that was applied."""
    project = (root / "lmsconf.yaml").read_text().replace('"sandbox:"', '"sandbox:workspace.db"')
    (root / "lmsconf.yaml").write_text(project)
    save_plan(root)
    assert lmsconf(root, "apply", "plan.json").code == 0


def expire_plan(root: Path) -> None:
    """A plan file whose time is over."""
    save_plan(root)
    path = root / "plan.json"
    plan = plan_file.loads(path.read_text())
    path.write_text(plan_file.dumps(replace(plan, expires_at="2026-01-01T00:00:00Z")))


def two_projects(root: Path) -> None:
    """A project in a folder of another one, without manifests of its own."""
    (root / "nested").mkdir()
    (root / "nested" / "lmsconf.yaml").write_text(PROJECT)


def text_plan(root: Path) -> None:
    """What `plan` prints, kept as if it were a plan file."""
    (root / "plan.txt").write_text(lmsconf(root, "plan").out)


def save_snapshot(root: Path) -> None:
    """A snapshot of the workspace."""
    assert lmsconf(root, "snapshot", "snapshot.json").code == 0


def typed(*command: str) -> Mistake:
    """A command line of another tool, or one that lacks a word."""
    return Mistake(" ".join(("lmsconf", *command)), command)


def no_project(root: Path) -> None:
    """A folder with nothing in it, which is the root of a repository."""
    (root / ".git").mkdir()


MISTAKES: tuple[Mistake, ...] = (
    # Typing errors.
    manifest("a typing error in a key", "members:", "membres:"),
    manifest("a typing error in a section", "smart_groups:", "smartgroups:"),
    manifest("a typing error in an e-mail", "bo.ek@acme.example]", "bo.ekk@acme.example]", PLAN),
    manifest("an e-mail without its domain", "bo.ek@acme.example]", "bo.ek]"),
    manifest("a typing error in a field", "field: Country", "field: Contry", PLAN),
    manifest("a typing error in a choice", 'choices: [SE, "NO"]}]', "choices: [SE, Norway]}]"),
    manifest("a typing error in a type", "type: CHOICE", "type: CHOISE"),
    manifest("a typing error in a group", "{group: Safety officers}", "{group: Safety oficers}", PLAN),
    manifest("a typing error in a content", "content: Fire safety", "content: Fire safty", PLAN),
    manifest("a typing error in a variable", "name: Nordics", 'name: "$(regoin)"'),
    setting("a typing error in a time zone", "Europe/Stockholm", "Europe/Stokholm"),
    setting("a typing error in a setting", "default_workspace", "defualt_workspace"),
    setting("a typing error in a guard", "vars: {region: Nordics}", "guards: {delets: {count: 1}}"),
    Mistake("a typing error in a workspace", ("--workspace", "prodution", "plan")),
    Mistake("a typing error in a command", ("paln",)),
    Mistake("a typing error in an option", ("plan", "--detailed-exitcodes")),
    Mistake("a typing error in a format", ("plan", "--format", "markdwon")),
    Mistake("a typing error in an address", ("plan", "--only", "group/Safety oficers")),
    Mistake("a typing error in the kind of an address", ("plan", "--only", "grop/Safety officers")),
    Mistake("a typing error in a guard of --allow", ("apply", "--auto-approve", "--allow", "delets=1")),
    Mistake("a guard of --allow without a number", ("apply", "--auto-approve", "--allow", "deletes")),
    Mistake("a typing error in a topic", ("help", "gaurds")),
    Mistake("a typing error in a key to explain", ("explain", "smart_group.condition")),
    # YAML.
    manifest("a tab", "    managers:", "\tmanagers:"),
    manifest("a quote that is not closed", 'choices: [SE, "NO", FI]', 'choices: [SE, "NO, FI]'),
    manifest("a name that begins with @", "name: Nordics", "name: @Nordics"),
    manifest("a name with a colon", "name: Nordics", "name: Nordics: all"),
    manifest("a key twice", "    managers: [", "    members: []\n    managers: ["),
    manifest("yes for true", "content: Fire safety", "content: Fire safety\n    mandatory: yes"),
    manifest("a number for a name", "name: Nordics", "name: 007"),
    manifest("true among choices", 'choices: [SE, "NO", FI]', "choices: [SE, true, FI]"),
    manifest("a key without its value in braces", "{field: Country, choices: [SE", "{field, choices: [SE"),
    manifest("no space after a colon", "name: Nordics", "name:Nordics"),
    manifest("a wrong indent", "    members: [", "   members: ["),
    manifest("one item where a list is due", "members: [bo.ek@acme.example]", "members: bo.ek@acme.example"),
    manifest("nothing after the colon", "members: [bo.ek@acme.example]", "members:"),
    manifest("a dash that is missing", "  - name: Safety", "    name: Safety"),
    Mistake("a manifest in UTF-16", VALIDATE, {"manifests/new.yaml": "groups: [{name: Ä}]\n".encode("utf-16")}),
    Mistake("a manifest in Latin-1", VALIDATE, {"manifests/new.yaml": "groups: [{name: Ä}]\n".encode("latin-1")}),
    Mistake("CRLF and a byte order mark, which are none", VALIDATE, {
        "manifests/all.yaml": b"\xef\xbb\xbf" + MANIFEST.replace("\n", "\r\n").encode(),
    }),
    Mistake("a manifest named .txt", VALIDATE, {"manifests/all.txt": MANIFEST}, without=("manifests/all.yaml",)),
    Mistake("an empty manifest", VALIDATE, {"manifests/all.yaml": "# groups will follow\n"}),
    # CSV.
    sheet("a CSV file with another header", "E-mail,Name\nbo.ek@acme.example,Bo\n"),
    sheet("a CSV file with a header in upper case", "EMAIL;NAME\nbo.ek@acme.example;Bo\n"),
    sheet("a CSV file without a header", "bo.ek@acme.example\nanna.berg@acme.example\n"),
    sheet("a CSV file without people", "email\n"),
    sheet("a CSV file with a blank row", "email,name\nbo.ek@acme.example,Bo\n,\n"),
    sheet("a CSV file with a name in place of an e-mail", "email\nBo Ek\n"),
    sheet("a CSV file with an extra cell", "email,name\nbo.ek@acme.example,Ek, Bo\n"),
    sheet("a CSV file in Latin-1", "email,name\nbo.ek@acme.example,Åke\n".encode("latin-1")),
    sheet("an Excel workbook named .csv", workbook()),
    Mistake("a CSV file that is not there", VALIDATE, {"manifests/new.yaml": LEADERS}),
    Mistake("a CSV file that is a folder", VALIDATE, {
        "manifests/new.yaml": LEADERS, "manifests/leaders.csv/readme": "",
    }),
    added("a CSV file outside the project", LEADERS.replace("leaders.csv", "../../leaders.csv")),
    # The token and the way to the service.
    Mistake("a token that is not set", ("--workspace", "production", "plan")),
    served("a token with a line break", "https://lms.invalid/api", LMSCONF_TOKEN="abc\ndef"),
    served("a service that the sandbox's token does not open", "SERVED"),
    served("a port where nobody listens", "http://127.0.0.1:1/api"),
    served("a wrong path", "SERVED/wrong/api", LMSCONF_TOKEN="sandbox"),
    served("http where https is needed", "http://lms.example/api"),
    served("a URL without its scheme", "lms.example/api"),
    served("a URL with a query", "https://lms.example/api?token=abc"),
    served("https where the service speaks http", "SECURED"),
    served("a proxy of an unknown type", "https://lms.invalid/api", HTTPS_PROXY="ftp://proxy:21"),
    served("certificates that are not there", "https://lms.invalid/api", SSL_CERT_FILE="/nonexistent.pem"),
    Mistake("LMSCONF_URL and --workspace", ("--workspace", "staging", "plan"), env={"LMSCONF_URL": "sandbox:"}),
    Mistake("a token where the name of a variable is due", (
        "init", "new", "--no-input", "--url", "https://lms.example/api", "--token-env", "eyJhbGciOiJIUzI1NiJ9.e30.abc",
    )),
    setting("a token in the project file", "{env: LMSCONF_TOKEN}", "eyJhbGciOiJIUzI1NiJ9.e30.abc"),
    # Folders and options.
    Mistake("a folder without a project", PLAN, folder="elsewhere", prepare=lambda root: (root / "elsewhere").mkdir(),
            without=("lmsconf.yaml",)),
    Mistake("a project file with another ending", PLAN, {"lmsconf.yml": PROJECT}, without=("lmsconf.yaml",)),
    Mistake("-C with the project file", ("-C", "lmsconf.yaml", "plan")),
    Mistake("-C with a folder that is not there", ("-C", "nowhere", "plan")),
    Mistake("a project in a folder of another", PLAN, folder="nested", prepare=two_projects),
    Mistake("no folder of manifests", VALIDATE, without=("manifests/all.yaml",)),
    Mistake("--workspace after the command", ("plan", "--workspace", "stagin")),
    Mistake("init where a project is", ("init", "--no-input")),
    Mistake("--only with words of a view", ("plan", "--only", "assignment of Fire safety to group/Safety officers")),
    Mistake("--only with a section and a wrong name", ("plan", "--only", "groups/Safety")),
    Mistake("--only with a name alone", ("plan", "--only", "Safety officers")),
    Mistake("an e-mail for an audience", ("audience", "bo.ek@acme.example")),
    Mistake("access of somebody unknown", ("access", "bo.eck@acme.example")),
    Mistake("completion without a shell", ("completion",)),
    Mistake("export into manifests that are there", ("export",)),
    Mistake("--out without a file", ("plan", "--out")),
    Mistake("a full disk behind stdout", PLAN, stdout="/dev/full"),
    Mistake("--output into a folder", ("plan", "--output", "manifests")),
    Mistake("--out into a folder that is not there", ("plan", "--out", "plans/plan.json")),
    # Plan files.
    Mistake("a manifest as plan file", ("apply", "manifests/all.yaml")),
    Mistake("a plan file that is not there", ("apply", "plan.json")),
    Mistake("an edited plan file", ("apply", "plan.json"), prepare=edit_plan),
    Mistake("a plan file cut short", ("apply", "plan.json"), prepare=cut_plan),
    Mistake("a plan file of another workspace", ("--workspace", "staging", "apply", "plan.json"), prepare=save_plan),
    Mistake("a plan file applied twice", ("apply", "plan.json"), prepare=apply_plan),
    Mistake("a plan file of yesterday", ("apply", "plan.json"), prepare=expire_plan),
    Mistake("another digest than the plan's", ("apply", "--expect-digest", "0" * 64)),
    Mistake("apply without a terminal", ("apply",)),
    Mistake("a plan file with --only", ("apply", "plan.json", "--only", "group/Safety officers")),
    # What the service is not.
    added("a set in place of a person",
          "people_sets: {leads: [bo.ek@acme.example]}\ngroups: [{name: Leaders, members: [leads]}]\n"),
    manifest("a person's name in place of an e-mail", "members: [bo.ek@acme.example]", "members: [Bo Ek]"),
    manifest("a person's name in an audience", "{group: Safety officers}", "{user: bo.ek}", PLAN),
    manifest("a due date", "content: Fire safety", "content: Fire safety\n    due: 2026-12-31"),
    added("an assignment twice", "content_targets: [{content: Fire safety, assign_to: [{group: Safety officers}]}]\n"),
    manifest("an audience twice", "[{group: Safety officers}]", "[{group: Safety officers}, {group: Safety officers}]"),
    manifest("a window that ends before it begins", "content: Fire safety",
             "content: Fire safety\n    visible_from: 2026-06-01\n    visible_until: 2026-05-01"),
    manifest("a date as people write it", "content: Fire safety", "content: Fire safety\n    visible_from: 31/12/2026"),
    manifest("a person in two lists", "members: [bo.ek@acme.example]",
             "members: {include: [bo.ek@acme.example], exclude: [bo.ek@acme.example]}"),
    added("a group declared twice", "groups: [{name: Safety officers}]\n"),
    added("a group that is declared and absent", "absent: {groups: [Safety officers]}\n"),
    added("a group under a section's other name", "manual_groups: [{name: Mentors}]\n"),
    added("a field that a workspace has no room for",
          "custom_fields:\n" + "".join(f"  - {{name: F{number}, type: TEXT}}\n" for number in range(10))),
    added("a smart group without conditions", "smart_groups: [{name: All, conditions: []}]\n"),
    added("a person to delete", "absent: {users: [bo.ek@acme.example]}\n"),
    # Words of other tools.
    *(typed(*line.split()) for line in (
        "destroy", "import", "refresh", "state list", "get groups", "login", "version", "lint", "rename", "undo",
        "plan -out=plan.json", "apply -auto-approve", "plan --target group/A", "plan -f all.yaml", "apply --dry-run",
        "plan --workspace", "plan production", "plan manifests/all.yaml", "validate manifests/all.yaml", "-v",
        "sandbox start", "export --kind group", "snapshot", "api GET users", "access", "drift --accept",
        "apply --auto-approve --allow people=all", "plan --base mian", "plan --snapshot manifests/all.yaml",
        "plan --people people.txt", "init new --no-input --timezone CET+1", "init --ci jenkins",
        "audience everyone --by Contry",
    )),
    Mistake("access of a person by name", ("access", "Bo Ek")),
    Mistake("a part of a content's name", ("access", "bo.ek@acme.example", "Fire")),
    Mistake("an unknown workspace in the environment", PLAN, env={"LMSCONF_WORKSPACE": "prodution"}),
    # What a page, a mail or an office program puts into a text.
    manifest("a no-break space in an e-mail", "bo.ek@acme.example]", "bo.ek@acme.example\u00a0]"),
    manifest("a no-break space in a name", "{group: Safety officers}", "{group: Safety\u00a0officers}", PLAN),
    manifest("an indent of no-break spaces", "    managers:", "\u00a0\u00a0\u00a0\u00a0managers:"),
    manifest("a zero-width space in an e-mail", "bo.ek@acme.example]", "\u200bbo.ek@acme.example]", PLAN),
    manifest("a zero-width space in a key", "    managers:", "    \u200bmanagers:"),
    manifest("typographic quotes", 'choices: [SE, "NO"]}]', "choices: [\u201cSE\u201d]}]"),
    manifest("an e-mail with the person's name", "bo.ek@acme.example]", "Bo Ek <bo.ek@acme.example>]"),
    manifest("two e-mails in one text", "[bo.ek@acme.example]", '["bo.ek@acme.example, anna.berg@acme.example"]'),
    manifest("e-mails without brackets", "[bo.ek@acme.example]", "bo.ek@acme.example, anna.berg@acme.example"),
    manifest("a person as a mapping", "[bo.ek@acme.example]", "[{email: bo.ek@acme.example}]"),
    manifest("an e-mail in upper case, which is none", "bo.ek@acme.example]", "BO.EK@ACME.EXAMPLE]"),
    manifest("a date with dots", "content: Fire safety", "content: Fire safety\n    visible_from: 31.12.2026"),
    manifest("a date without zeros", "content: Fire safety", "content: Fire safety\n    visible_from: 2026-1-5"),
    manifest("a day that is none", "content: Fire safety", "content: Fire safety\n    visible_from: 2026-02-30"),
    added("a conflict of git", "groups:\n<<<<<<< HEAD\n  - name: A\n=======\n  - name: B\n>>>>>>> x\n"),
    added("a template", "groups:\n  - name: {{ team }}\n"),
    added("a loop of a template", "{%- for team in teams %}\ngroups: []\n{%- endfor %}\n"),
    added("a manifest of kubernetes", "kind: Group\nmetadata: {name: Leaders}\n"),
    added("a file of terraform", 'resource "group" "leaders" {\n  name = "Leaders"\n}\n'),
    sheet("a CSV file that begins with sep=;, which is none", "sep=;\nemail;name\nbo.ek@acme.example;Bo\n"),
    sheet("a CSV file in UTF-16", "email\tname\nbo.ek@acme.example\tBo\n".encode("utf-16")),
    sheet("a CSV file in UTF-16 without a mark", "email,name\nbo.ek@acme.example,Bo\n".encode("utf-16-le")),
    sheet("a CSV file with bars", "email|name\nbo.ek@acme.example|Bo\n"),
    sheet("a CSV file with the person's name in the cell", "email\nBo Ek <bo.ek@acme.example>\n"),
    sheet("a CSV file with a column twice", "email,email\nbo.ek@acme.example,b\n"),
    # The shape of manifests.
    manifest("no for false", "content: Fire safety", "content: Fire safety\n    mandatory: no"),
    manifest("a word of another system", "content: Fire safety", "content: Fire safety\n    required: true"),
    manifest("a text for an assignment", "- content: Fire safety\n    assign_to: [{group: Safety officers}]", "- Fire"),
    manifest("a text for an audience", "assign_to: [{group: Safety officers}]", "assign_to: [Safety officers]"),
    manifest("an audience without brackets", "[{group: Safety officers}]", "{group: Safety officers}"),
    manifest("a smart group as a group", "{group: Safety officers}", "{group: Nordics}", PLAN),
    manifest("an e-mail for an audience of content", "{group: Safety officers}", "bo.ek@acme.example"),
    manifest("a field as a key", "{field: Country, choices: [SE", "{Country: [SE"),
    manifest("a name that is missing", "  - name: Safety officers\n    managers", "  - managers"),
    manifest("a key in the singular", "members:", "member:"),
    manifest("only_in with an unknown workspace", "name: Nordics", "name: Nordics\n    only_in: [prodution]"),
    added("groups by name", "groups:\n  Leaders:\n    members: []\n"),
    added("a list without a section", "- name: Leaders\n"),
    added("a section in the singular", "group: [{name: Leaders}]\n"),
    # The project file and the token.
    setting("a URL in place of a workspace", '{url: "https://lms.invalid/api", token: {env: LMSCONF_TOKEN}}',
            "https://lms.invalid/api"),
    setting("a workspace without its URL", 'url: "https://lms.invalid/api", ', ""),
    setting("a variable of the shell for a token", "{env: LMSCONF_TOKEN}", "$LMSCONF_TOKEN"),
    setting("a default workspace that is none", "default_workspace: sandbox", "default_workspace: prod"),
    setting("a number for a guard", "vars: {region: Nordics}", "guards: {deletes: 5}"),
    setting("a consent without its end", "vars: {region: Nordics}", "allow: [{people: 3}]"),
    served("a token with the word Bearer", "https://lms.invalid/api", LMSCONF_TOKEN="Bearer abc"),
    served("a token in quotes", "https://lms.invalid/api", LMSCONF_TOKEN='"abc"'),
    served("a token with a space at its end", "https://lms.invalid/api", LMSCONF_TOKEN="abc "),
    served("a URL with a space at its end", "https://lms.example/api "),
    served("a URL with a password", "https://me:pw@lms.invalid/api"),
    served("a proxy where nobody listens", "https://lms.invalid/api", HTTPS_PROXY="http://127.0.0.1:1"),
    # Files that are no plan files.
    Mistake("what plan prints as plan file", ("apply", "plan.txt"), prepare=text_plan),
    Mistake("a snapshot as plan file", ("apply", "snapshot.json"), prepare=save_snapshot),
    Mistake("an empty plan file", ("apply", "plan.json"), {"plan.json": ""}),
)  # fmt: skip
