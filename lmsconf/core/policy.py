"""What the project file decides about planning: whose things are whose, and where to stop. Plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, tzinfo

from lmsconf.errors import Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A guard's limit: a total that may be reached, and a share of each list of at least twenty (0.1 is 10 %).

    None: that half of the guard is off.
    """

    count: int | None
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The four limits and the resources that nothing may be taken from. A limit that is None was said to be off.

    min_admins: how many people must have administrator rights after a plan that takes them from somebody.
    """

    deletes: Limit | None = Limit(count=5, share=0.10)
    removals: Limit | None = Limit(count=50, share=0.10)
    recreates: Limit | None = Limit(count=0)
    refusals: Limit | None = Limit(count=0)
    protect: tuple[str, ...] = ()
    min_admins: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """`removals=214`, from the command line (`until` and `source` are None) or from the project file."""

    guard: str
    number: int
    reason: str | None = None
    until: date | None = None
    source: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything beside manifests and snapshot that decides a plan.

    workspace     its name, which `id:` maps and `only_in` speak of
    ownership     kind → shell patterns, `!` excludes; for content targets `("declared_content",)` or `("all",)`
    leave_alone   shell patterns over addresses
    timezone      for times that name no offset; `timezone_name` is its IANA name
    skip_unknown  people that are not live are warnings, up to a tenth of a list
    create_people whether people who are declared and not live are created
    today         decides `until:` dates
    command       how lmsconf is called for this project and workspace, for the lines to paste
    """

    workspace: str
    today: date
    ownership: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leave_alone: tuple[str, ...] = ()
    guards: Guards = Guards()
    consents: tuple[Consent, ...] = ()
    timezone: tzinfo | None = None
    timezone_name: str | None = None
    skip_unknown: bool = False
    create_people: bool = False
    additive: bool = False
    only: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    command: str = "lmsconf"
