"""The layout of `--help`, and messages for a wrong command line, also for words of terraform, kubectl and git.

Imported only where one of them is shown.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from difflib import get_close_matches
from textwrap import TextWrapper
from typing import Final, NoReturn

import click

from lmsconf.cli.output import terminal_size
from lmsconf.errors import UsageError

OPTION_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Select": (
        "--only",
        "--except",
        "--additive",
        "--kind",
        "--into",
        "--by",
        "--members",
        "--live",
        "--select",
        "--since",
    ),
    "Compare": ("--snapshot", "--base", "--undo", "--unmanaged", "--coverage"),
    "Fleet": ("--processes", "--time-limit", "--shard", "--shards", "--image", "--max-failures"),
    "Engine": ("--engine", "--scheduler", "--worker-project", "--allow-unencrypted"),
    "Accept": ("--accept",),
    "Answers": ("--url", "--workspace-name", "--token-env", "--timezone", "--ci", "--schemas", "--no-input"),
    "Rehearsal": ("--rehearse",),
    "Approval": ("--auto-approve", "--expect-digest", "--require-rehearsal", "--id", "--yes"),
    "Probe": ("--probe", "--user", "--content"),
    "Guards": ("--allow", "--no-effects", "--trust-project"),
    "Request": ("--query", "--body"),
    "Workspace": ("--db", "--seed", "--from"),
    "Sizes": ("--users", "--groups", "--smart-groups", "--fields", "--contents", "--assignments", "--seed-number"),
    "Faults": ("--latency", "--faults"),
    "Output": (
        *("--format", "--output", "--limit", "--out", "--people", "--detailed-exitcode", "--expanded", "--redact"),
        *("--verify", "--meta", "--events", "--log", "--search", "--check", "--diff"),
    ),
    "Signature": ("--sign-key", "--key"),
    "Missing runs": ("--head",),
    "Connection": ("--parallelism", "--max-rate", "--port", "--token"),
}
"""Heading → the options below it, for all commands. An option in none of them is listed under *Options*."""

_HYPHEN: Final = "\u2011"
"""The hyphen at which no line is broken, until it is written as the usual one."""

EXAMPLES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "lmsconf": (
        ("Create a project with an embedded workspace to try", "lmsconf init --url sandbox"),
        ("Show what apply would change on one of the workspaces", "lmsconf plan --workspace production"),
    ),
    "lmsconf init": (
        (
            "Create a project for a workspace, without questions",
            "lmsconf init --url https://lms.example/api --no-input",
        ),
        ("Create a project with an embedded workspace and GitHub workflows", "lmsconf init --url sandbox --ci github"),
    ),
    "lmsconf validate": (
        ("Check the manifests of a project in another folder", "lmsconf validate -C lms"),
        ("Show each problem at its line in a pull request on GitHub", "lmsconf validate --format github"),
    ),
    "lmsconf fmt": (
        ("Put all manifests of the project in order", "lmsconf fmt"),
        ("In CI: show what is not in order, and exit 2", "lmsconf fmt --check --diff"),
    ),
    "lmsconf plan": (
        ("Save the plan, to apply exactly that later", "lmsconf plan --out plan.json"),
        ("Plan one group, and what it needs", "lmsconf plan --only 'group/Onboarding coaches'"),
    ),
    "lmsconf show": (
        ("Show a saved plan", "lmsconf show plan.json"),
        ("Write it as a page for a browser", "lmsconf show plan.json --format html --output plan.html"),
    ),
    "lmsconf apply": (
        ("Plan, ask, and apply", "lmsconf apply"),
        ("Apply a saved plan that removes 214 members", "lmsconf apply plan.json --allow removals=214"),
    ),
    "lmsconf drift": (
        ("Report what was changed by hand, and exit 2 if there is any", "lmsconf drift"),
        ("Take a change by hand over into the manifests", "lmsconf drift --accept 'group/Mentors'"),
    ),
    "lmsconf access": (
        ("Show what a person has, and why", "lmsconf access bo.ek@acme.example"),
        ("Show why a person has one content, or has it not", "lmsconf access bo.ek@acme.example 'GDPR basics'"),
    ),
    "lmsconf audience": (
        ("Count the people of a smart group", "lmsconf audience 'smart_group/Sales Nordics'"),
        ("Count everybody by their answer to a custom field", "lmsconf audience everyone --by Country"),
    ),
    "lmsconf test": (
        ("Judge the tests on the state after the plan", "lmsconf test"),
        ("Judge them on the live state, and write JUnit XML", "lmsconf test --live --format junit --output tests.xml"),
    ),
    "lmsconf runs": (
        ("List the runs from this folder", "lmsconf runs"),
        ("Show the latest run call by call", "lmsconf runs latest"),
    ),
    "lmsconf history": (
        ("Show which runs changed a group", "lmsconf history 'group/Onboarding coaches'"),
        ("Show which runs changed something for a person, as JSON", "lmsconf history bo.ek@acme.example --format json"),
    ),
    "lmsconf evidence": (
        ("Write the evidence of the latest run, signed", "lmsconf evidence latest --out evidence --sign-key key.pem"),
        ("Verify it, and whose signature it has", "lmsconf evidence verify evidence --key public.pem"),
    ),
    "lmsconf unlock": (
        ("Remove the lock of a run that has ended, after a question", "lmsconf unlock"),
        ("Remove the lock with this id", "lmsconf unlock --id g-17"),
    ),
    "lmsconf export": (
        ("Write manifests for all that is live", "lmsconf export manifests"),
        ("Add what the manifests do not declare yet", "lmsconf export --into --kind groups"),
    ),
    "lmsconf snapshot": (
        ("Save the workspace, to plan without a connection", "lmsconf snapshot workspace.json"),
        ("Omit people who are not in the manifests", "lmsconf snapshot workspace.json --redact"),
    ),
    "lmsconf explain": (
        ("Explain a key of the manifests", "lmsconf explain smart_group.conditions"),
        ("Explain the code of a message", "lmsconf explain reference/unknown-choice"),
    ),
    "lmsconf help": (
        ("List the pages of the guide", "lmsconf help"),
        ("Find a word in all pages", "lmsconf help --search consent"),
    ),
    "lmsconf graph": (
        ("Draw the dependency graph with Graphviz", "lmsconf graph --format dot --output graph.dot"),
        ("Draw one smart group and what it needs", "lmsconf graph --only 'smart_group/Sales Nordics'"),
    ),
    "lmsconf doctor": (
        ("Check connection, token and limits", "lmsconf doctor"),
        ("Learn the names of the API on scratch objects", "lmsconf doctor --probe"),
    ),
    "lmsconf api": (
        ("Read a page of people", "lmsconf api GET /users --query limit=5"),
        ("Create a group", 'lmsconf api POST /groups --body \'{"name": "Mentors"}\''),
    ),
    "lmsconf completion": (
        ("Complete commands in this bash", 'eval "$(lmsconf completion bash)"'),
        ("Complete commands in this fish", "lmsconf completion fish | source"),
    ),
    "lmsconf sandbox": (
        ("Serve the project's embedded workspace on this machine", "lmsconf sandbox serve"),
        ("Fill a new workspace with 500 users", "lmsconf sandbox seed --db big.db --users 500"),
    ),
    "lmsconf fleet": (
        ("Plan every workspace of the project", "lmsconf fleet plan"),
        ("Apply the saved plans of these workspaces", "lmsconf fleet apply plans"),
    ),
    "lmsconf fleet validate": (
        ("Check the manifests of all workspaces", "lmsconf fleet validate"),
        ("Check those of one ring", "lmsconf fleet validate --select ring=canary"),
    ),
    "lmsconf fleet plan": (
        ("Save the plans of all workspaces", "lmsconf fleet plan --out plans"),
        ("Plan all workspaces but those of a region", "lmsconf fleet plan --select 'region!=us'"),
    ),
    "lmsconf fleet drift": (
        ("Look for drift in all workspaces", "lmsconf fleet drift"),
        ("Write what was found as a page", "lmsconf fleet drift --format html --output drift.html"),
    ),
    "lmsconf fleet test": (
        ("Run the tests in all workspaces", "lmsconf fleet test"),
        ("Run them in one ring", "lmsconf fleet test --select ring=canary"),
    ),
    "lmsconf fleet show": (
        ("Show saved plans", "lmsconf fleet show plans"),
        ("Write them as a page", "lmsconf fleet show plans --format html --output plans.html"),
    ),
    "lmsconf fleet collect": (
        ("Put the plans of two shards together", "lmsconf fleet collect shard-1 shard-2 --out plans"),
        ("Write them as Markdown as well", "lmsconf fleet collect shard-1 shard-2 --out plans --format markdown"),
    ),
    "lmsconf fleet matrix": (
        ("Print a matrix of eight jobs for GitHub", "lmsconf fleet matrix --format github --shards 8"),
        ("Print a child pipeline for GitLab", "lmsconf fleet matrix --format gitlab --shards 8"),
    ),
    "lmsconf fleet apply": (
        ("Apply saved plans, after a question", "lmsconf fleet apply plans"),
        ("Allow what the fleet's guard counts", "lmsconf fleet apply plans --allow people=26"),
    ),
    "lmsconf sandbox serve": (
        ("Serve a workspace in memory on a free port", "lmsconf sandbox serve --port 0 --seed workspace.yaml"),
        ("Wait 50 ms before each response", "lmsconf sandbox serve --latency 0.05"),
    ),
    "lmsconf sandbox seed": (
        ("Fill the project's workspace from its seed file", "lmsconf sandbox seed"),
        ("Write a seed file with generated people", "lmsconf sandbox seed --users 500 --out workspace.yaml"),
    ),
    "lmsconf sandbox reset": (
        ("Reset the project's workspace, after a question", "lmsconf sandbox reset"),
        ("Reset a file without a question", "lmsconf sandbox reset --db big.db --yes"),
    ),
}
"""Command → two examples, each with what it is for."""


class _HelpFormatter(click.HelpFormatter):
    """click's formatter, which breaks no line within `--auto-approve`, and fits narrow terminals.

    On one of less than 60 columns, an option's text is on the line below its name.
    """

    def write(self, string: str) -> None:
        super().write(string.replace(_HYPHEN, "-"))

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        if self.width < 60:
            lead = " " * (self.current_indent + 2)
            narrow = TextWrapper(self.width - len(lead), break_on_hyphens=False, break_long_words=False)
            # A name that is wider than its column has its text below it; a list of choices is cut after `|`.
            rows = [
                (f"\n{lead}".join(narrow.wrap(name.replace("|", "| "))).replace("| ", "|"), text) for name, text in rows
            ]
            col_max = 2
        super().write_dl([(term, text.replace("-", _HYPHEN)) for term, text in rows], col_max, col_spacing)


def help_formatter() -> click.HelpFormatter:
    """Return a formatter as wide as the terminal, at most 80 columns."""
    return _HelpFormatter(width=max(min(terminal_size(sys.stdout).columns, 80), 20) - 1)


def write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the two examples of a command; none for a command that is not lmsconf's."""
    if examples := EXAMPLES.get(ctx.command_path):
        with formatter.section("Examples"):
            indent = " " * formatter.current_indent
            for comment, line in examples:
                # The width of a wrapped text includes its indent.
                width = formatter.width + len(indent) - 2
                wrapped = click.wrap_text(comment, width, f"{indent}# ", f"{indent}# ")
                formatter.write(f"{wrapped}\n{indent}{line}\n")


def write_options(
    parameters: Iterable[click.Parameter],
    global_options: Container[click.Parameter],
    ctx: click.Context,
    formatter: click.HelpFormatter,
) -> None:
    """Write the options among the parameters of a command by groups, the global ones last."""
    records: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Options", *OPTION_GROUPS, "Global options")}
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if record is not None and isinstance(parameter, click.Option):
            is_global = parameter in global_options or "--help" in parameter.opts
            named = (name for name, options in OPTION_GROUPS.items() if set(options) & set(parameter.opts))
            records["Global options" if is_global else next(named, "Options")].append(record)
    for name, rows in records.items():
        if rows:
            with formatter.section(name):
                formatter.write_dl(rows)


_ABSENT: Final = "To delete resources, list them under `absent`, then run lmsconf plan and lmsconf apply."
_LIVE: Final = (
    "There is no state file. lmsconf snapshot FILE saves the live state, lmsconf export writes it as manifests."
)
COMMANDS_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("destroy", "delete", "rm", "remove"), _ABSENT),
    **dict.fromkeys(("lint", "check", "verify"), "Run lmsconf validate."),
    **dict.fromkeys(
        ("diff", "status", "refresh", "preview"),
        "lmsconf plan shows what would change, lmsconf drift what was changed by hand.",
    ),
    **dict.fromkeys(("state", "output", "pull"), _LIVE),
    **dict.fromkeys(
        ("user", "users", "person", "people", "group", "groups", "members"),
        "Run lmsconf access EMAIL for a person, or lmsconf audience for a group.",
    ),
    **dict.fromkeys(
        ("rollback", "revert", "undo"),
        "Run lmsconf plan --undo latest --out undo.json, then lmsconf apply undo.json. Revert the manifests too.",
    ),
    **dict.fromkeys(("get", "list", "describe", "ls"), f"For one request, run lmsconf api GET PATH. {_LIVE}"),
    **dict.fromkeys(("deploy", "push", "sync", "up"), "Run lmsconf plan, then lmsconf apply."),
    **dict.fromkeys(
        ("log", "logs"), "lmsconf runs lists what was applied from here, lmsconf history who changed what."
    ),
    **dict.fromkeys(("create", "new"), "lmsconf init creates a project. Resources are created by lmsconf apply."),
    **dict.fromkeys(
        ("rename", "mv", "move"), "Change the name in the manifest, and list the old one under `previously`."
    ),
    **dict.fromkeys(("login", "auth"), "Set LMSCONF_TOKEN to an API key, then run lmsconf doctor."),
    **dict.fromkeys(("serve", "mock"), "Run lmsconf sandbox serve."),
    **dict.fromkeys(("format",), "Run lmsconf fmt."),
    "import": "Run lmsconf export --into: it writes manifests for live resources.",
    "workspace": "Select a workspace with --workspace NAME.",
    "workspaces": "lmsconf.yaml lists the workspaces. Select one with --workspace NAME.",
    "version": "Run lmsconf --version.",
}
"""Commands of other tools → what to run here."""

_ALL_MANIFESTS: Final = "lmsconf reads all manifests of the project, and -C DIR selects another project."
OPTIONS_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("target", "t", "resource"), "Select resources with --only ADDRESS."),
    **dict.fromkeys(("var", "var-file"), "Set variables under `vars` in lmsconf.yaml."),
    **dict.fromkeys(("f", "file", "filename"), _ALL_MANIFESTS),
    **dict.fromkeys(
        ("y", "yes", "force", "auto", "a"), "lmsconf apply asks for approval, unless you pass --auto-approve."
    ),
    **dict.fromkeys(
        ("w", "n", "namespace", "env", "environment", "context"), "Select a workspace with --workspace NAME."
    ),
    **dict.fromkeys(("o", "json"), "Choose the format with --format, such as --format json, and a file with --output."),
    **dict.fromkeys(("v", "V"), "Use --version for the version, and --verbose to see each request."),
    **dict.fromkeys(("no-color", "color"), "Set the environment variable NO_COLOR=1."),
    **dict.fromkeys(("q", "quiet", "silent"), "Write the output to a file with --output, or redirect it."),
    "dry-run": "lmsconf plan shows what would change, and changes nothing.",
    "chdir": "Select a project with -C DIR.",
    "refresh-only": "Run lmsconf drift.",
    "destroy": _ABSENT,
    "token": "A token is never an option: set LMSCONF_TOKEN.",
    "url": "Set LMSCONF_URL, or list the workspace in lmsconf.yaml.",
}
"""Options of other tools, without dashes → what to do here."""


def fail_unknown_command(ctx: click.Context, name: str, known: Sequence[str]) -> NoReturn:
    """Fail with the nearest command, or with all of them. `advised_error` hints at those of other tools."""
    near = get_close_matches(name, known, 1)
    others = f". Did you mean {near[0]!r}?" if near else f". There are {', '.join(known)}."
    ctx.fail(f"no such command {name!r}{'' if ctx.parent is None and name in COMMANDS_ELSEWHERE else others}")


def advised_error(error: click.UsageError, arguments: Sequence[str], command: str) -> UsageError:
    """Return the error for a wrong command line, in our words and with a hint.

    command: whose help the hint names, if click does not say it, as for an option without its value.
    """
    message, hint = error.format_message(), None
    see = f"See: {error.ctx.command_path if error.ctx else command} --help"
    match error:
        case click.NoSuchOption():
            message, hint = _unknown_option(error, arguments)
        case click.MissingParameter(param=click.Parameter(name=name, type=click.Choice(choices=[*others, last]))):
            message = f"no {name} is given. Choose {', '.join(others)} or {last}"  # in one line; click has a list
        case _ if extra := re.match(r"Got unexpected extra arguments? \((\S+)", message):
            hint = _extra_argument(extra[1].rstrip(")"), error.ctx)
        case _ if unknown := re.fullmatch(r"no such command '([\w-]+)'", message):
            hint = COMMANDS_ELSEWHERE.get(unknown[1])
    return UsageError(message, hint=f"{hint} {see}" if hint else see)


def _unknown_option(error: click.NoSuchOption, arguments: Sequence[str]) -> tuple[str, str | None]:
    """Return message and hint for an unknown option; click names only the first letter of one with a single dash."""
    word = next((one for one in arguments if len(one) > 2 and one.startswith(error.option_name) and one[1] != "-"), "")
    name = (word or error.option_name).partition("=")[0]
    message = error.format_message() if not word else f"No such option '{name}'."
    long = f"--{name.lstrip('-')}"
    if word and error.ctx and any(long in param.opts for param in error.ctx.command.get_params(error.ctx)):
        return message, f"Long options begin with two dashes: write {long}{word[len(name) :]}."
    return message, None if error.possibilities else OPTIONS_ELSEWHERE.get(name.lstrip("-"))


def _extra_argument(word: str, ctx: click.Context | None) -> str | None:
    """Return the hint for a word that a command takes no argument for: a manifest, a resource or a workspace."""
    options = {option for param in ctx.command.get_params(ctx) for option in param.opts} if ctx else set[str]()
    if word.endswith((".yaml", ".yml", ".json", ".tf")) or word.startswith("."):
        return f"{_ALL_MANIFESTS}{' Select resources with --only ADDRESS.' if '--only' in options else ''}"
    if "/" in word and "--only" in options:
        return "Select resources with --only, and put an address with blanks in quotes."
    if re.fullmatch(r"[\w-]+", word):
        flag = f"--select workspace={word}" if "--select" in options else f"--workspace {word}"
        return f"If {word} is a workspace, write {flag}."
    return None
