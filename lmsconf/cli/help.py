"""`lmsconf help` and `completion`: the guide, paged and searched, and what bash, zsh and fish ask and get."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from lmsconf.cli.command import Command, completes
from lmsconf.cli.context import COMPLETION_VARIABLE
from lmsconf.cli.output import supports_color, terminal_size, write_redacted
from lmsconf.errors import LmsconfError, UsageError

if TYPE_CHECKING:
    from lmsconf.cli.context import CommandContext
    from lmsconf.model.address import Address
    from lmsconf.model.declarations import Manifests

_WIDEST_PAGE = 100
"""The widest page of the guide."""
_EXCERPT = 78
"""The width of a line that contains a word that is searched."""
_WHOLE_LINES = 1_000_000
"""A width at which no paragraph is wrapped, so that a phrase is found also where the file breaks its line."""


@click.command(name="help", cls=Command)
@click.argument("words", metavar="[TOPIC | COMMAND]", nargs=-1, shell_complete=completes("topics"))
@click.option("--search", metavar="WORD", help="List the lines of all pages that contain this, or all of these words.")
@click.pass_context
def help_command(context: click.Context, *, words: tuple[str, ...], search: str | None) -> None:
    """Print a page of the guide.

    Without a topic, the pages are listed. On a terminal a long page is shown in a pager: LMSCONF_PAGER, else PAGER,
    else less. With the name of a command, its --help is printed.
    """
    from lmsconf.support.files import guide_topics

    topics = sorted(guide_topics(), key=lambda topic: (topic != "getting-started", topic))
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
    from lmsconf.support.files import read_guide_page

    return guide_page_text(read_guide_page(topic), _WHOLE_LINES).splitlines()


def _page(topic: str, context: click.Context) -> str:
    """Return a page for this terminal; of a topic that is also a command, with the line that shows its options."""
    from lmsconf.render.help_pages import guide_page_text
    from lmsconf.support.files import read_guide_page

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
    from lmsconf.model.lint_codes import RULES
    from lmsconf.model.names import did_you_mean
    from lmsconf.model.problem_codes import meaning_of

    root = context.find_root()
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    if meaning_of(name) or name in RULES:
        explained = f"To explain a code, run lmsconf explain {name}. List the pages with: lmsconf help"
        return UsageError(f"there is no topic or command {name!r}", hint=explained)
    near = did_you_mean(name, [*topics, *commands])
    hint = f"{near} List the pages with: lmsconf help" if near else f"Topics are {', '.join(topics)}."
    return UsageError(f"there is no topic or command {name!r}", hint=hint)


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


_BASH: Final = """\
%(complete_func)s() {
    local IFS=$'\\n' response type value
    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \
%(complete_var)s=bash_complete "$1" 2>/dev/null)
    COMPREPLY=()
    while IFS=, read -r type value; do
        if [[ $type == dir ]]; then
            compopt -o dirnames
        elif [[ $type == file ]]; then
            compopt -o default
        elif [[ $type == plain ]]; then
            COMPREPLY+=("$value")
            [[ $value == *= ]] && compopt -o nospace
        fi
    done <<< "$response"
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_FISH: Final = """\
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) \
COMP_CWORD=(commandline -t) %(prog_name)s 2>/dev/null)
    for completion in $response
        set -l metadata (string split -m1 "," $completion)
        if test $metadata[1] = "dir"
            __fish_complete_directories $metadata[2]
        else if test $metadata[1] = "file"
            __fish_complete_path $metadata[2]
        else if test $metadata[1] = "plain"
            printf "%%s\\n" $metadata[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""
_PLAIN: Final = re.compile(r"[^\w@%+,./-]")
_IN_DOUBLE_QUOTES: Final = re.compile(r'[\\"$`]')
_CLOSED: Final = re.compile(
    r"""(?: \\. | \$'(?:\\.|[^'\\])*' | '[^']*' | "(?:\\.|[^"\\])*" | \$(?!') | [^\\$'"] )*+""", re.DOTALL | re.VERBOSE
)
"""A command line of bash up to the quote that is left open."""


class _Silent(ShellComplete):
    """A shell that is answered with nothing where completion fails: whatever is written appears in the prompt."""

    def complete(self) -> str:
        try:
            answer = super().complete()
        except Exception:  # a broken project file, an unreadable folder, a wrong command line: the command itself says
            return ""
        return answer.encode("utf-8", "replace").decode()


class Bash(_Silent, BashComplete):
    """bash 4.4 or newer: values are quoted here, since bash inserts them as they are."""

    source_template = _BASH

    def complete(self) -> str:
        # Up to the cursor; scripts of earlier versions do not say where that is.
        self._quote = _open_quote(os.environ.get("COMP_LINE") or os.environ.get("COMP_WORDS", ""))
        return "" if self._quote == "$'" else super().complete()

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"{item.type},{item.value if item.goes_on else self._quoted(str(item.value))}"

    def _quoted(self, value: str) -> str:
        if self._quote == "'":
            return value.replace("'", r"'\''")
        if self._quote == '"':
            return _IN_DOUBLE_QUOTES.sub(r"\\\g<0>", value)
        return _PLAIN.sub(r"\\\g<0>", value)


class Zsh(_Silent, ZshComplete):
    """zsh, which quotes values itself."""


class Fish(_Silent, FishComplete):
    """fish, which quotes values itself."""

    source_template = _FISH


_SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def _open_quote(line: str) -> str:
    """Return the quote that is open at the end of a command line: `'`, `"` or `$'`; empty if none is."""
    closed = _CLOSED.match(line)
    rest = line[closed.end() :] if closed else ""
    return next((quote for quote in ("$'", "'", '"') if rest.startswith(quote)), "")


def register_shells() -> None:
    """Let click answer shells with these classes."""
    for shell in _SHELLS.values():
        add_completion_class(shell)


Item = CompletionItem[str]


def folders(context: CommandContext, incomplete: str) -> list[Item]:
    """Let the shell complete a folder."""
    return [CompletionItem(incomplete, type="dir")]


def workspaces(context: CommandContext, incomplete: str) -> list[Item]:
    """The workspaces of the project file."""
    from lmsconf.project.config_reader import read_project_file

    return _beginning(incomplete, read_project_file(context.project).mapping_at("workspaces"))


def addresses(context: CommandContext, incomplete: str) -> list[Item]:
    """The resources that manifests declare or delete."""
    manifests = _manifests(context)
    return _addresses(incomplete, [entry.address for entry in (*manifests.declared, *manifests.absent)])


def audiences(context: CommandContext, incomplete: str) -> list[Item]:
    """What manifests assign content to, or declare and can be assigned content."""
    from lmsconf.kinds.kind_table import KINDS, dependencies
    from lmsconf.model.address import EVERYBODY, Address

    relations = [kind for kind in KINDS.values() if kind.is_relation]
    known = {name for kind in relations for name in kind.references}
    own, named = [], [Address(EVERYBODY, "")]
    for resource in _manifests(context).declared:
        own += [resource.address] if resource.address.kind in known else []
        named += dependencies(resource) if KINDS[resource.address.kind].is_relation else []
    return _addresses(incomplete, [*own, *named])


def people(context: CommandContext, incomplete: str) -> list[Item]:
    """The e-mails that manifests name."""
    from lmsconf.planner.read.needed_listings import emails_of

    manifests = _manifests(context)
    return _beginning(incomplete, sorted(emails_of((*manifests.declared, *manifests.absent))))


def contents(context: CommandContext, incomplete: str) -> list[Item]:
    """The content that manifests assign."""
    from lmsconf.kinds.shared.kind_names import CONTENT_TARGET

    declared = _manifests(context).declared
    return _beginning(incomplete, (one.spec.content for one in declared if one.address.kind == CONTENT_TARGET))


def sections(context: CommandContext, incomplete: str) -> list[Item]:
    """The sections that `export` can write."""
    from lmsconf.kinds.kind_table import KINDS

    return _beginning(incomplete, (kind.section for kind in KINDS.values()))


def runs(context: CommandContext, incomplete: str) -> list[Item]:
    """The recorded runs, the latest first."""
    from lmsconf.documents.journal.journal_reader import run_names

    return _beginning(incomplete, ("latest", *run_names(context.project)))


def topics(context: CommandContext, incomplete: str) -> list[Item]:
    """The pages of the guide, and the commands."""
    from lmsconf.cli.command import COMMANDS
    from lmsconf.support.files import guide_topics

    return _beginning(incomplete, (*guide_topics(), *COMMANDS))


def guards(context: CommandContext, incomplete: str) -> list[Item]:
    """The guards, each with a `=` that a number follows."""
    from lmsconf.model.policy import GUARDS

    return [CompletionItem(f"{name}=", goes_on=True) for name in GUARDS if f"{name}=".startswith(incomplete)]


def trusted_parts(context: CommandContext, incomplete: str) -> list[Item]:
    """The parts of a project file that can be trusted, after those that are listed already."""
    from lmsconf.project.credentials import PARTS

    before, comma, _ = incomplete.rpartition(",")
    return _beginning(incomplete, (f"{before}{comma}{part}" for part in PARTS if part not in before.split(",")))


def explained(context: CommandContext, incomplete: str) -> list[Item]:
    """What `explain` explains: one more word of a path, and codes."""
    from lmsconf.manifest.explain import explainable

    return _beginning(incomplete, explainable(incomplete))


def _manifests(context: CommandContext) -> Manifests:
    """Return the manifests as far as they can be read; a workspace's variables are those of the chosen one."""
    from lmsconf.project.settings import load_settings
    from lmsconf.workspace.project_manifests import load_manifests

    return load_manifests(load_settings(context.project, context.workspace, context.environ))


def _addresses(incomplete: str, known: Iterable[Address]) -> list[Item]:
    """Return the addresses that begin so, under the word that was typed for their kind; else those named so."""
    from lmsconf.kinds.kind_table import KINDS
    from lmsconf.planner.selection import kind_words

    word, slash, _ = incomplete.partition("/")
    kind = next((kind for kind in KINDS.values() if slash and word in kind_words(kind)), None)
    listed = sorted({*known})
    spelled = (f"{word}/{one.text}" if kind and one.kind == kind.name else str(one) for one in listed)
    begun = incomplete.casefold()
    return _beginning(incomplete, spelled) or _items(
        lambda: (str(one) for one in listed if not slash and one.text.casefold().startswith(begun))
    )


def _beginning(incomplete: str, values: Iterable[str]) -> list[Item]:
    return _items(lambda: (value for value in dict.fromkeys(values) if value.startswith(incomplete)))


def _items(values: Callable[[], Iterator[str]]) -> list[Item]:
    # A shell takes a line for a value.
    return [CompletionItem(value) for value in values() if "\n" not in value]


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    """Print the completion script of a shell.

    For bash, put eval "$(lmsconf completion bash)" into ~/.bashrc; for zsh the same with zsh into ~/.zshrc; for fish,
    lmsconf completion fish | source.
    """
    write_redacted(
        _SHELLS[shell](context.find_root().command, {}, "lmsconf", COMPLETION_VARIABLE).source() + "\n", sys.stdout
    )
