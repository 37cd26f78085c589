"""What a probe does to learn each key that manifests of any kind rest on, as the guide shows it."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from lmsconf.api.spec.dialect_candidates import (
    ADD_MODE,
    BATCH,
    CLEAR_DESCRIPTION,
    CLEAR_TIME,
    DEFAULT_START,
    EVERYONE_ID,
    MANAGED_GROUPS,
    METADATA_MODE,
    ON_EXISTING,
    PAGE_SIZE,
    TIME_FORMAT,
    WHO_CAN_MANAGE,
)
from lmsconf.api.spec.operations import MATCH_COUNT
from lmsconf.api.spec.value_encoding import OMITTED, TIME_ZONE, WRAPPER
from lmsconf.doctor import probe_assignments as assignment
from lmsconf.doctor import probe_fields_and_groups as scratch
from lmsconf.doctor import probe_people as person
from lmsconf.doctor.person_backup import DATE

_PERSON: Final = "a scratch account, or the first person of --user"
_ACCOUNTS: Final = "`people: {create: true}`"
_ANSWERED: Final = "a scratch field of type {} is answered in each form, and read back"


class Experiment(Struct, frozen=True):
    """What is sent and read to learn a key. needs: what it takes besides scratch objects; empty for nothing."""

    does: str
    needs: str = ""


EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    MATCH_COUNT: Experiment("as many people are counted as listed, or more"),
    PAGE_SIZE: Experiment(
        "a longer page of each listing is asked for, and its rows are counted", "more rows than a page"
    ),
    scratch.RENAME: Experiment("a scratch group is renamed, each time to another name, and read back"),
    assignment.MANDATORY: Experiment(
        "the content is assigned to a scratch group as mandatory and as optional, and read back", "--content"
    ),
    assignment.START: Experiment(
        "the content is assigned to a scratch group with a start, in each format, and read back", "--content"
    ),
    TIME_ZONE: Experiment(
        "a start is sent with an offset and read back, compared with the project's zone", "--content"
    ),
    TIME_FORMAT: Experiment("a start is sent in each format and read back", "--content"),
    assignment.PRECISION: Experiment("a start with 37 seconds is sent and read back", "--content"),
    assignment.FINISH: Experiment(
        "the content is assigned to a scratch group with an end, in each format taken, and read back", "--content"
    ),
    DEFAULT_START: Experiment("the content is assigned without a start, and read back", "--content"),
    ON_EXISTING: Experiment(
        "the content is assigned to the same scratch group again with another value, and read back", "--content"
    ),
    CLEAR_TIME: Experiment("an assignment with a start is changed to one without, and read back", "--content"),
    EVERYONE_ID: Experiment(
        "the assignments of the content are read: nothing is assigned to everyone for a try",
        "--content that is assigned to everyone",
    ),
    CLEAR_DESCRIPTION: Experiment(
        "a scratch field with a description is replaced by one without, and read back", "a free custom field"
    ),
    scratch.IN_USE: Experiment(
        "a scratch field that a condition of a scratch smart group names is replaced, loses a choice, and is deleted, "
        "until that is refused",
        "a free custom field",
    ),
    person.EMAIL: Experiment("a scratch account is created and looked up", _ACCOUNTS),
    person.FIRST: Experiment("a scratch account is created with a first name and read back", _ACCOUNTS),
    person.LAST: Experiment("a scratch account is created with a last name and read back", _ACCOUNTS),
    person.LANGUAGE: Experiment("two scratch accounts are created with different languages and read back", _ACCOUNTS),
    person.WELCOME: Experiment(
        "a scratch account is created with each name, where the service refuses unknown names",
        _ACCOUNTS,
    ),
    DATE: Experiment("an archive date more than nine years ahead is set, read back, and restored", _PERSON),
    METADATA_MODE: Experiment("the metadata is sent without one of its keys, read back, and restored", _PERSON),
    WRAPPER: Experiment("a scratch field is answered under each key, and read back", _PERSON),
    person.VALUES["CHOICE"]: Experiment(_ANSWERED.format("CHOICE"), _PERSON),
    person.VALUES["MULTI_SELECT"]: Experiment(_ANSWERED.format("MULTI_SELECT"), _PERSON),
    person.VALUES["TEXT"]: Experiment(_ANSWERED.format("TEXT"), _PERSON),
    OMITTED: Experiment(
        "one of two answered scratch fields is answered without the other, and both are read back",
        f"{_PERSON}; two free custom fields",
    ),
    **{
        person.CLEARING[type]: Experiment(
            f"an answer to a scratch field of type {type} is cleared in each form", _PERSON
        )
        for type in ("CHOICE", "MULTI_SELECT", "TEXT")
    },
    scratch.MEMBERS: Experiment("the person is added to a scratch group, read back, and removed", "--user"),
    scratch.MANAGERS: Experiment("the person is made manager of a scratch group, read back, and removed", "--user"),
    WHO_CAN_MANAGE: Experiment(
        "somebody without the manager right is made manager of a scratch group, and read back; if that is refused, "
        "somebody with it is",
        "--user without the right, and with it if that is refused",
    ),
    MANAGED_GROUPS: Experiment(
        "somebody is given the manager right and made manager of a scratch group, the right is taken again, and the "
        "group is read",
        "a scratch account, or --user without rights, without an archive date, who manages no group",
    ),
    BATCH: Experiment(
        "the same person is added to a scratch group many times in one call, then people who do not exist", "--user"
    ),
    ADD_MODE: Experiment(
        "a second member, and then a second manager, is added to a scratch group, and a second manager to a "
        "scratch smart group, and the lists are read back",
        "--user twice, or a scratch account",
    ),
}
"""Key → how a probe learns it, in the order in which that is done."""
