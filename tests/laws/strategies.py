"""What is said to a workspace whatever is in it: names, e-mails, times and parts of requests, some of them wrong."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from laws.model_values import GROUP, SMART_GROUP

names = st.sampled_from(["Coaches", "coaches", "Åre | 100 %", "Straße", ""])
field_names = st.sampled_from(["Unit", "Badge", "Åre"])
emails = st.sampled_from(["anna@x.example", "ANNA@x.example", "bo@x.example", "cy@x.example", "åse@x.example", "none"])
languages = st.sampled_from(["sv", "no", "uk", "SV"])
parts = st.sampled_from(["", "a", "ANNA", "åre", "strasse", "%", "_"])
written_names = {"firstName": names, "lastName": names}
metadata = st.dictionaries(st.sampled_from(["unit", "cost"]), st.sampled_from(["7", "ø"]))
written_languages = st.fixed_dictionaries({"language": languages})
written_metadata = st.fixed_dictionaries({"metadata": metadata})
times = st.sampled_from([None, "2025-12-31T23:00:00Z", "2026-01-01T02:00:00+01:00", "2026-02-01T00:00:00Z", "soon"])
kinds = st.sampled_from([GROUP, SMART_GROUP])
choice_names = st.lists(st.sampled_from(["East", "West", "Öst"]), max_size=3)
details = st.fixed_dictionaries(
    {},
    optional={
        "description": st.sampled_from(["Where", "", None]),
        "isHidden": st.booleans(),
        "isLocked": st.booleans(),
        "isOptional": st.booleans(),
    },
)


def mostly(ids: Iterable[str]) -> st.SearchStrategy[str]:
    """One of the ids, and now and then one that nothing has."""
    return st.sampled_from([*list(ids) * 9, "none"])
