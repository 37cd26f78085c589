"""Check the runs of a folder of evidence against their hash chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from lmsconf.audit.run_entry import entry_order
from lmsconf.documents.document import JsonObjectReader
from lmsconf.errors import Problem
from lmsconf.model.canonical_json import Json

Entry = Mapping[str, Json]


def chain_findings(entries: Sequence[Entry]) -> Iterator[Problem]:
    """Yield what is wrong with the order and the links of the runs. Raises ValueError for entries of another form."""
    if list(map(entry_order, entries)) != sorted(map(entry_order, entries)):
        yield _finding("evidence/order", "the runs are not in the order of their numbers")
    for _, group in groupby(sorted(entries, key=entry_order), key=lambda entry: entry_order(entry)[:2]):
        chained = [entry for entry in group if entry["chain"] is not None]
        for earlier, later in pairwise(chained):
            yield from _link_findings(JsonObjectReader(dict(earlier)), JsonObjectReader(dict(later)))


def _link_findings(earlier: JsonObjectReader, later: JsonObjectReader) -> Iterator[Problem]:
    before, link = earlier.reader("chain"), later.reader("chain")
    here, there, run = before.number("number"), link.number("number"), later.text("run")
    name = earlier.text("run")
    if there <= here:
        # A folder `.lmsconf/runs` that was deleted begins a chain with number 1 again.
        yield _finding("evidence/chain", f"{run} and {name} are both run {there} of their workspace, or out of order")
    elif there != here + 1:
        missing = "a run is" if there == here + 2 else f"{there - here - 1} runs are"
        yield _finding("evidence/chain", f"{missing} missing between {name} (run {here}) and {run} (run {there})")
    elif link.maybe("previous", link.text) != name:
        yield _finding("evidence/chain", f"{run} names another run before it than {name}")
    elif link.maybe("previous_sha256", link.text) != earlier.reader("originals").text("journal"):
        yield _finding("evidence/chain", f"the journal of {name} is not the one that {run} names by its digest")


def head_findings(entries: Sequence[Entry], heads: Sequence[str]) -> Iterator[Problem]:
    """Yield the heads of chains that none of the runs is: runs at the end of a chain were dropped.

    The first run of a folder names the run before it, which is as good: nothing is missing after that.
    """
    readers = [JsonObjectReader(dict(entry)) for entry in entries]
    known = {reader.reader("originals").maybe("journal", reader.reader("originals").text) for reader in readers}
    links = [reader.reader("chain") for reader in readers if reader.json("chain") is not None]
    known |= {link.maybe("previous_sha256", link.text) for link in links}
    for head in heads:
        if head not in known:
            yield Problem(
                code="evidence/head",
                message=f"the run with the journal {head} is not here: runs at the end are missing",
                hint="Ask for the folder again from where the runs were made, with all runs since then.",
            )


def _finding(code: str, message: str) -> Problem:
    return Problem(code=code, message=message, hint="Ask for the folder again from where the runs were made.")
