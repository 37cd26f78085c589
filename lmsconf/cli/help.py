"""The layout of `--help`, and `lmsconf help`: the guide, paged on a terminal and searched."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten
from typing import Final

import click

from lmsconf.cli.command import GLOBAL_OPTIONS, Command, completes
from lmsconf.cli.output_streams import supports_color, terminal_size, write_redacted
from lmsconf.errors import ExitCode, LmsconfError, UsageError

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

_REST: Final = "Options"
_GLOBAL: Final = "Global options"
_HELP: Final = "--help"
_HYPHEN: Final = "\u2011"
"""The hyphen at which no line is broken, until it is written as the usual one."""
_WIDEST: Final = 80
_NARROW: Final = 60
"""The width below which an option's text is on the line below its name."""

Example = tuple[str, str]

EXAMPLES: Final[Mapping[str, tuple[Example, Example]]] = {
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

    On a narrow one, an option's text is on the line below its name.
    """

    def write(self, string: str) -> None:
        super().write(string.replace(_HYPHEN, "-"))

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        if self.width >= _NARROW:
            super().write_dl([(term, text.replace("-", _HYPHEN)) for term, text in rows], col_max, col_spacing)
            return
        for term, text in rows:
            for piece in _pieces(term, self.width - self.current_indent):
                self.write(f"{'':>{self.current_indent}}{piece}\n")
            with self.indentation(), self.indentation():
                self.write_text(text)


def _pieces(term: str, width: int) -> Iterable[str]:
    """Split a list of choices that is wider than the terminal, after a `|`."""
    piece = ""
    for part in term.replace("|", "|\n").splitlines():
        if piece and len(piece) + len(part) > width:
            yield piece
            piece = "  "
        piece += part
    yield piece


def help_formatter() -> click.HelpFormatter:
    """Return a formatter as wide as the terminal, at most 80 columns."""
    columns = min(terminal_size(sys.stdout).columns, _WIDEST)
    return _HelpFormatter(width=max(columns, 20) - 1)


def write_examples(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the two examples of a command; none for a command that is not lmsconf's."""
    examples = EXAMPLES.get(ctx.command_path, ())
    if not examples:
        return
    with formatter.section("Examples"):
        for comment, line in examples:
            for line_of in click.wrap_text(comment, formatter.width - formatter.current_indent - 2).splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}# {line_of}\n")
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options of a command by groups, the global ones last."""
    records: dict[str, list[tuple[str, str]]] = {_REST: [], **{name: [] for name in OPTION_GROUPS}, _GLOBAL: []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None and isinstance(parameter, click.Option):
            records[_group_of(parameter)].append(record)
    for name, rows in records.items():
        if rows:
            with formatter.section(name):
                formatter.write_dl(rows)


def _group_of(option: click.Option) -> str:
    if option in GLOBAL_OPTIONS or _HELP in option.opts:
        return _GLOBAL
    return next((name for name, options in OPTION_GROUPS.items() if set(options) & set(option.opts)), _REST)


_WIDEST_PAGE = 100
"""The widest page of the guide."""
_FIRST = "getting-started"
"""The page that is listed first; the others follow by name."""
_EXCERPT = 78
"""The width of a line that contains a word that is searched."""
_WHOLE_LINES = 1_000_000
"""A width at which no paragraph is wrapped, so that a phrase is found also where the file breaks its line."""


@click.command(name="help", cls=Command)
@click.argument("words", metavar="[TOPIC | COMMAND]", nargs=-1, shell_complete=completes("topics"))
@click.option("--search", metavar="WORD", help="List the lines of all pages that contain this, or all of these words.")
@click.pass_context
def help_command(context: click.Context, *, words: tuple[str, ...], search: str | None) -> ExitCode:
    """Print a page of the guide.

    Without a topic, the pages are listed. On a terminal a long page is shown in a pager: LMSCONF_PAGER, else PAGER,
    else less. With the name of a command, its --help is printed.
    """
    from lmsconf.support.folders import guide_topics

    topics = sorted(guide_topics(), key=lambda topic: (topic != _FIRST, topic))
    if search is not None:
        _print("".join(f"{line}\n" for line in _found(search, _searched(words, topics))), wraps=True)
    elif not words:
        _print(_list(topics))
    elif len(words) == 1 and words[0] in topics:
        _print(_page(words[0], context))
    elif command := _find_command(words, context):
        _print(f"{command.get_help()}\n")
    else:
        raise _unknown(" ".join(words), topics, context)
    return ExitCode.OK


def _print(text: str, *, wraps: bool = False) -> None:
    write_redacted(text, sys.stdout, wraps=wraps, pages=True)


def _width() -> int:
    from lmsconf.render.help_pages import NARROWEST

    return max(min(terminal_size(sys.stdout).columns, _WIDEST_PAGE), NARROWEST)


def _list(topics: Sequence[str]) -> str:
    """Return the topics with the first sentence of each page, in one line each."""
    name = max(map(len, topics))
    room = _width() - name - 4
    lines = [f"  {topic:{name}}  {shorten(_summary(topic), room, placeholder=' …')}\n" for topic in topics]
    usage = "Open a page with `lmsconf help TOPIC`. Search all pages with `lmsconf help --search WORD`.\n"
    return f"Topics:\n{''.join(lines)}\n{usage}"


def _summary(topic: str) -> str:
    """Return the first sentence below the title of a page."""
    _, *paragraphs = _lines(topic)
    return next(paragraph for paragraph in paragraphs if paragraph).partition(". ")[0].rstrip(".")


def _lines(topic: str) -> list[str]:
    """Return the lines of a page, each paragraph in one."""
    from lmsconf.render.help_pages import guide_page_text
    from lmsconf.support.folders import read_guide_page

    return guide_page_text(read_guide_page(topic), _WHOLE_LINES).splitlines()


def _page(topic: str, context: click.Context) -> str:
    """Return a page for this terminal; of a topic that is also a command, with the line that shows its options."""
    from lmsconf.render.help_pages import guide_page_text
    from lmsconf.support.folders import read_guide_page

    text = guide_page_text(read_guide_page(topic), _width(), bold=supports_color(sys.stdout))
    also = f"\nOptions of the command: lmsconf {topic} --help\n" if _find_command((topic,), context) else ""
    return text + also


def _find_command(words: Sequence[str], context: click.Context) -> click.Context | None:
    """Return the context of the command that these words call; None if there is none."""
    current = context.find_root()
    for word in words:
        group = current.command
        command = group.get_command(current, word) if isinstance(group, click.Group) else None
        if command is None:
            return None
        current = click.Context(command, info_name=word, parent=current)
    return current


def _unknown(name: str, topics: Sequence[str], context: click.Context) -> UsageError:
    from lmsconf.model.lints import RULES
    from lmsconf.model.names import did_you_mean
    from lmsconf.model.problem_codes import meaning_of

    root = context.find_root()
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    listed = f"Topics are {', '.join(topics)}."
    if meaning_of(name) or name in RULES:
        explained = f"To explain a code, run lmsconf explain {name}. List the pages with: lmsconf help"
        return UsageError(f"there is no topic or command {name!r}", hint=explained)
    near = did_you_mean(name, [*topics, *commands])
    return UsageError(
        f"there is no topic or command {name!r}", hint=f"{near} List the pages with: lmsconf help" if near else listed
    )


def _searched(words: Sequence[str], topics: Sequence[str]) -> Sequence[str]:
    """Return the topics to search: those named, or all. Raises UsageError for an unknown one."""
    if unknown := [word for word in words if word not in topics]:
        raise UsageError(f"there is no topic {unknown[0]!r}", hint=f"Topics are {', '.join(topics)}.")
    return words or topics


def _found(text: str, topics: Sequence[str]) -> list[str]:
    """Return the lines of the pages that contain a text in any case; if none does, those with all its words.

    Raises LmsconfError if there are none.
    """
    phrase = " ".join(text.casefold().split())
    lines = [(topic, " ".join(line.split())) for topic in topics for line in _lines(topic)]
    for wanted in ([phrase], phrase.split()):
        excerpts = [
            _excerpt(f"{topic}: ", line, wanted[0])
            for topic, line in lines
            if phrase and all(word in line.casefold() for word in wanted)
        ]
        if excerpts:
            return excerpts
    raise LmsconfError(f"no page contains {text!r}", hint="Search for one word, or list the pages with: lmsconf help")


def _excerpt(lead: str, line: str, wanted: str) -> str:
    """Return the words of a line around a text, with its page, in about 80 characters."""
    room = max(_EXCERPT - len(lead), len(wanted))
    if len(line) <= room:
        return lead + line
    start = max(min(line.casefold().find(wanted) - room // 3, len(line) - room), 0)
    part = line[start : start + room]
    before = f"… {part.partition(' ')[2]}" if start else part
    return lead + (f"{before.rpartition(' ')[0]} …" if start + room < len(line) else before)
