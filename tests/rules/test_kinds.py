"""What the five kinds override is what their base class has."""

from __future__ import annotations

from lmsconf.kinds import all_kinds
from lmsconf.planner.kind import Kind


def test_a_kind_has_no_public_names_that_kind_lacks() -> None:
    """A method that Kind does not have is never called: a hook that was renamed there would be lost unseen."""
    known = {*dir(Kind), *Kind.__annotations__}
    unknown = {name: sorted(vars(type(kind)).keys() - known) for name, kind in all_kinds().items()}
    assert {name: [one for one in names if not one.startswith("_")] for name, names in unknown.items() if names} == {}
