"""The values that a shell completes to, all of them offline: from the project file, the manifests, and the package.

No function here sends a request, opens a workspace, or runs a token's command. They may raise: `completion_shells`
answers a shell with nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from lmsconf.cli.frame import CommandContext
    from lmsconf.model.address import Address
    from lmsconf.model.declarations import Manifests

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
    from lmsconf.kinds import all_kinds
    from lmsconf.kinds.entries import dependencies
    from lmsconf.model.address import EVERYBODY, Address

    kinds = all_kinds()
    relations = [kind for kind in kinds.values() if kind.is_relation]
    known = {name for kind in relations for name in kind.references}
    own, named = [], [Address(EVERYBODY, "")]
    for resource in _manifests(context).declared:
        own += [resource.address] if resource.address.kind in known else []
        named += dependencies(resource) if kinds[resource.address.kind].is_relation else []
    return _addresses(incomplete, [*own, *named])


def people(context: CommandContext, incomplete: str) -> list[Item]:
    """The e-mails that manifests name."""
    from lmsconf.kinds import all_kinds
    from lmsconf.planner.reading import emails_of

    manifests = _manifests(context)
    return _beginning(incomplete, sorted(emails_of((*manifests.declared, *manifests.absent), all_kinds())))


def contents(context: CommandContext, incomplete: str) -> list[Item]:
    """The content that manifests assign."""
    from lmsconf.kinds.shared.kind_names import CONTENT_TARGET

    declared = _manifests(context).declared
    return _beginning(incomplete, (one.spec.content for one in declared if one.address.kind == CONTENT_TARGET))


def sections(context: CommandContext, incomplete: str) -> list[Item]:
    """The sections that `export` can write."""
    from lmsconf.kinds import all_kinds

    return _beginning(incomplete, (kind.section for kind in all_kinds().values()))


def runs(context: CommandContext, incomplete: str) -> list[Item]:
    """The recorded runs, the latest first."""
    from lmsconf.journal.journal_reader import run_names

    return _beginning(incomplete, ("latest", *run_names(context.project)))


def topics(context: CommandContext, incomplete: str) -> list[Item]:
    """The pages of the guide, and the commands."""
    from lmsconf.cli import COMMANDS
    from lmsconf.support.package_data import guide_topics

    return _beginning(incomplete, (*guide_topics(), *COMMANDS))


def guards(context: CommandContext, incomplete: str) -> list[Item]:
    """The guards, each with a `=` that a number follows."""
    from lmsconf.model.policy import GUARDS

    return [CompletionItem(f"{name}=", goes_on=True) for name in GUARDS if f"{name}=".startswith(incomplete)]


def trusted_parts(context: CommandContext, incomplete: str) -> list[Item]:
    """The parts of a project file that can be trusted, after those that are listed already."""
    from lmsconf.project.base_trust import PARTS

    before, comma, _ = incomplete.rpartition(",")
    given = before.split(",")
    return _beginning(incomplete, (f"{before}{comma}{part}" for part in PARTS if part not in given))


def explained(context: CommandContext, incomplete: str) -> list[Item]:
    """What `explain` explains: one more word of a path, and codes."""
    from lmsconf.kinds import all_kinds
    from lmsconf.manifest.explain import explainable

    return _beginning(incomplete, explainable(all_kinds(), incomplete))


def _manifests(context: CommandContext) -> Manifests:
    """Return the manifests as far as they can be read; a workspace's variables are those of the chosen one."""
    from lmsconf.project.settings import load_settings
    from lmsconf.workspace.project_manifests import load_manifests

    return load_manifests(load_settings(context.project, context.workspace, context.environ))


def _addresses(incomplete: str, known: Iterable[Address]) -> list[Item]:
    """Return the addresses that begin so, under the word that was typed for their kind; else those named so."""
    from lmsconf.kinds import all_kinds
    from lmsconf.planner.address_patterns import kind_words

    word, slash, _ = incomplete.partition("/")
    kind = next((kind for kind in all_kinds().values() if slash and word in kind_words(kind)), None)
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
