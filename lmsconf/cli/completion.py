"""Completion of the command line: what bash, zsh and fish ask, and the values that they get."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from click.shell_completion import BashComplete, CompletionItem, FishComplete, add_completion_class

from lmsconf.model.control_characters import escape_invisible

if TYPE_CHECKING:
    from lmsconf.cli.context import CommandContext
    from lmsconf.model.address import Address
    from lmsconf.model.declarations import Manifests

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

_CLOSED: Final = re.compile(
    r"""(?: \\. | \$'(?:\\.|[^'\\])*' | '[^']*' | "(?:\\.|[^"\\])*" | \$(?!') | [^\\$'"] )*+""", re.DOTALL | re.VERBOSE
)
"""A command line of bash up to the quote that is left open."""


@add_completion_class
class Bash(BashComplete):
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
        acting = r'[\\"$`]' if self._quote else r"[^\w@%+,./-]"
        return re.sub(acting, r"\\\g<0>", value)


@add_completion_class
class Fish(FishComplete):
    """fish, which quotes values itself, as zsh does."""

    source_template = _FISH


def _open_quote(line: str) -> str:
    """Return the quote that is open at the end of a command line: `'`, `"` or `$'`; empty if none is."""
    rest = _CLOSED.sub("", line, count=1)
    return next((quote for quote in ("$'", "'", '"') if rest.startswith(quote)), "")


Item = CompletionItem[str]


def folders(context: CommandContext, incomplete: str) -> list[Item]:
    """Let the shell complete a folder."""
    return [CompletionItem(incomplete, type="dir")]


def workspaces(context: CommandContext, incomplete: str) -> list[Item]:
    """The workspaces of the project file."""
    from lmsconf.project.config_reader import read_project_file

    return items(incomplete, read_project_file(context.project).mapping_at("workspaces"))


def addresses(context: CommandContext, incomplete: str) -> list[Item]:
    """The resources that manifests declare or delete."""
    manifests = _manifests(context)
    return _addresses(incomplete, [entry.address for entry in (*manifests.declared, *manifests.absent)])


def audiences(context: CommandContext, incomplete: str) -> list[Item]:
    """What manifests assign content to, or declare and can be assigned content."""
    from lmsconf.kinds.kind_table import KINDS, dependencies
    from lmsconf.model.address import EVERYBODY, Address

    assignable = {name for kind in KINDS.values() if kind.is_relation for name in kind.references}
    found = [Address(EVERYBODY, "")]
    for resource in _manifests(context).declared:
        found += [resource.address] if resource.address.kind in assignable else []
        found += dependencies(resource) if KINDS[resource.address.kind].is_relation else []
    return _addresses(incomplete, found)


def people(context: CommandContext, incomplete: str) -> list[Item]:
    """The e-mails that manifests name."""
    from lmsconf.planner.read.needed_listings import emails_of

    manifests = _manifests(context)
    return items(incomplete, sorted(emails_of((*manifests.declared, *manifests.absent))))


def contents(context: CommandContext, incomplete: str) -> list[Item]:
    """The content that manifests assign."""
    from lmsconf.kinds.shared.kind_names import CONTENT_TARGET

    return items(
        incomplete,
        (one.spec.content for one in _manifests(context).declared if one.address.kind == CONTENT_TARGET),
    )


def sections(context: CommandContext, incomplete: str) -> list[Item]:
    """The sections that `export` can write."""
    from lmsconf.kinds.kind_table import KINDS

    return items(incomplete, (kind.section for kind in KINDS.values()))


def runs(context: CommandContext, incomplete: str) -> list[Item]:
    """The recorded runs, the latest first."""
    from lmsconf.documents.journal.journal_reader import run_names

    return items(incomplete, ("latest", *run_names(context.project)))


def guards(context: CommandContext, incomplete: str) -> list[Item]:
    """The guards, each with a `=` that a number follows."""
    from lmsconf.model.guards import GUARDS

    return [CompletionItem(f"{name}=", goes_on=True) for name in GUARDS if f"{name}=".startswith(incomplete)]


def trusted_parts(context: CommandContext, incomplete: str) -> list[Item]:
    """The parts of a project file that can be trusted, after those that are listed already."""
    from lmsconf.project.credentials import PARTS

    before, comma, _ = incomplete.rpartition(",")
    return items(incomplete, (f"{before}{comma}{part}" for part in PARTS if part not in before.split(",")))


def explained(context: CommandContext, incomplete: str) -> list[Item]:
    """What `explain` explains: one more word of a path, and codes."""
    from lmsconf.manifest.explain import explainable

    return items(incomplete, explainable(incomplete))


def topics(context: CommandContext, incomplete: str) -> list[Item]:
    """The pages of the guide, and the commands."""
    from lmsconf.cli.command import COMMANDS
    from lmsconf.support.files import guide_topics

    return items(incomplete, (*guide_topics(), *COMMANDS))


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
    named = (str(one) for one in listed if not slash and one.text.casefold().startswith(incomplete.casefold()))
    return items(incomplete, spelled) or items("", named)


def items(incomplete: str, values: Iterable[str]) -> list[Item]:
    """Return the values that begin so, each once."""
    # A shell takes a line for a value, and what is invisible cannot be chosen.
    return [
        CompletionItem(value)
        for value in dict.fromkeys(values)
        if value.startswith(incomplete) and value == escape_invisible(value)
    ]
