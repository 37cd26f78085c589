"""The scripts that complete lmsconf's command line in bash, zsh and fish, and the answers that they read.

click's own scripts split values at commas and blanks, and in bash insert them unquoted: addresses have both.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

VARIABLE: Final = "_LMSCONF_COMPLETE"
"""The environment variable in which a script says what it wants."""
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


def _open_quote(line: str) -> str:
    """Return the quote that is open at the end of a command line: `'`, `"` or `$'`; empty if none is."""
    closed = _CLOSED.match(line)
    rest = line[closed.end() :] if closed else ""
    return next((quote for quote in ("$'", "'", '"') if rest.startswith(quote)), "")


def register_shells() -> None:
    """Let click answer shells with these classes."""
    for shell in (Bash, Zsh, Fish):
        add_completion_class(shell)
