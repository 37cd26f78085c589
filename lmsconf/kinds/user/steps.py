"""The calls that create or change a person, and their order.

Rights are revoked before an archive date is set and before the account is archived. No administrator right is revoked
before all of the plan's grants of it are done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from msgspec.structs import replace

from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.shared.manifest_entry import PeopleList
from lmsconf.kinds.shared.plan_context import BeforeAfter, Match, PlanContext
from lmsconf.kinds.shared.steps import free_name_ref, freed_name_ref, granted_rights_ref
from lmsconf.kinds.user.field_answers import answers_steps
from lmsconf.kinds.user.types import APPLICATIONS, RIGHTS, TEXTS, Answer, PersonRow, PersonSpec
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Step
from lmsconf.model.forms import Form

_ADMINS: Final = Ref(Address(USER, ""), "(all admins)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PROFILE: Final = {
    "users.update-email": ("email",),
    "users.update-fullname": ("first_name", "last_name"),
    "users.update-language": ("language",),
}
"""Operation → the keys of entries that it sets."""
Path = Mapping[str, "str | Ref"]


def person_steps(planning: PlanContext, match: Match[PersonSpec, PersonRow], sides: BeforeAfter) -> list[Step]:
    """Return the calls: create or unarchive, profile, metadata, answers, rights, applications, archive date, archive.

    An archive date is cleared before rights are granted, and set after they are revoked.
    """
    at, row = match.address, match.row
    spec = match.declared.spec
    before, after = sides.before or {}, sides.after or {}
    path: Path = {"userId": Ref(at) if row is None else row.id}
    steps: list[Step] = []
    if row is None:
        steps.append(_creation(planning, at, after))
    ready = frozenset({Ref(at)}) if row is None else frozenset()
    if row is not None and before.get("archived") and not after["archived"]:
        back = Ref(at, "(active)")
        steps.append(Step(operation="users.unarchive", path=path, makes=frozenset({back})))
        ready = frozenset({back})
    if row is not None:
        steps.extend(_profile(planning, at, row, path, ready, before, after))
    steps.extend(_metadata(planning, row, path, ready, before, after))
    if _differs(before, after, "answers"):
        old, new = (cast("Mapping[str, Answer]", form.get("answers", {})) for form in (before, after))
        steps.extend(replace(one, uses=one.uses | ready) for one in answers_steps(planning, at, path, row, old, new))
    if _differs(before, after, "custom_archive_date") and spec.archive_date is None and row is not None:
        steps.append(_archive_date(planning, path, None, ready, cleared=at))
    steps.extend(_rights(at, path, ready, before, after))
    steps.extend(_applications(planning, at, path, ready, before, after))
    if _differs(before, after, "custom_archive_date") and spec.archive_date is not None:
        steps.append(_archive_date(planning, path, spec.archive_date, ready | _revoked(at)))
    if row is not None and after.get("archived") and not before["archived"]:
        made = frozenset(ref for step in steps for ref in step.makes)
        # The person may be an administrator, so new administrators are granted first.
        steps.append(Step(operation="users.archive", path=path, uses=made | _revoked(at) | {_ADMINS}, revokes=True))
    return steps


def _differs(before: Form, after: Form, key: str) -> bool:
    return key in after and (key not in before or before[key] != after[key])


def _creation(planning: PlanContext, at: Address, after: Form) -> Step:
    """Return the call that creates the account, without a welcome e-mail: sending one is not lmsconf's decision."""
    texts = {wire_name: after[key] for key, wire_name in TEXTS.items()}
    return Step(
        operation="users.create",
        body=planning.api_spec.body_to_wire("users.create", email=at.name, **texts, sendWelcomeEmail=False),
        makes=frozenset({Ref(at)}),
        uses=free_name_ref(at),
    )


def _profile(
    planning: PlanContext, at: Address, row: PersonRow, path: Path, ready: frozenset[Ref], before: Form, after: Form
) -> Iterator[Step]:
    """Yield the changes of e-mail, names and language of an existing account."""
    for operation, keys in _PROFILE.items():
        values = {TEXTS.get(key, key): after[key] for key in keys if _differs(before, after, key)}
        if values:
            is_renamed = "email" in values
            yield Step(
                operation=operation,
                path=path,
                body=planning.api_spec.body_to_wire(operation, **values),
                makes=freed_name_ref(USER, row) if is_renamed else frozenset(),
                uses=ready | (free_name_ref(at) if is_renamed else frozenset()),
            )


def _metadata(
    planning: PlanContext, row: PersonRow | None, path: Path, ready: frozenset[Ref], before: Form, after: Form
) -> Iterator[Step]:
    """Yield one call with the live map and the declared keys: the service may replace the whole map."""
    if not _differs(before, after, "metadata"):
        return
    declared = cast("Mapping[str, str | None]", after["metadata"])
    held = dict(row.metadata or ()) if row else {}
    whole = {key: value for key, value in {**held, **declared}.items() if value is not None}
    if whole != held:
        yield Step(
            operation="users.update-metadata",
            path=path,
            body=planning.api_spec.body_to_wire("users.update-metadata", metadata=whole),
            uses=ready,
        )


def _rights(at: Address, path: Path, ready: frozenset[Ref], before: Form, after: Form) -> Iterator[Step]:
    """Yield grants and revocations; adding the person to a list of managers waits for the grants."""
    for key in RIGHTS:
        if not _differs(before, after, key) or (key not in before and not after[key]):
            continue
        operation, endow = f"user-access.make-{key}", str(after[key]).lower()
        everybody = frozenset({_ADMINS}) if key == "admin" else frozenset()
        if after[key]:
            makes, uses = granted_rights_ref(at.name) | everybody, ready | frozenset({_cleared(at)})
            yield Step(operation=operation, path={**path, "endow": endow}, makes=makes, uses=uses)
        else:
            makes, uses = _revoked(at), ready | everybody
            yield Step(operation=operation, path={**path, "endow": endow}, makes=makes, uses=uses, revokes=True)


def _applications(
    planning: PlanContext, at: Address, path: Path, ready: frozenset[Ref], before: Form, after: Form
) -> Iterator[Step]:
    """Yield one call per application to add or remove.

    The initial applications of a new account are not specified, so for it all additions and removals are sent.
    """
    wanted = after.get("applications")
    if not isinstance(wanted, PeopleList):
        return
    live = before.get("applications")
    held = live.include if isinstance(live, PeopleList) else frozenset()
    unwanted = held - wanted.include
    if not isinstance(live, PeopleList):
        unwanted = frozenset(APPLICATIONS) - wanted.include if wanted.whole else wanted.exclude
    for action, applications in (("ADD", wanted.include - held), ("REMOVE", unwanted)):
        for application in sorted(applications):
            taken = action == "REMOVE"
            yield Step(
                operation="user-access.set",
                path={**path, "action": action},
                body=planning.api_spec.body_to_wire("user-access.set", applicationId=application),
                makes=_revoked(at) if taken else frozenset(),
                uses=ready,
                revokes=taken,
            )


def _archive_date(
    planning: PlanContext, path: Path, date: datetime | None, uses: frozenset[Ref], cleared: Address | None = None
) -> Step:
    operation = "users.set-custom-archived-date"
    moment = None if date is None else (date - _EPOCH) // timedelta(milliseconds=1)
    makes = frozenset({_cleared(cleared)}) if cleared else frozenset()
    body = planning.api_spec.body_to_wire(operation, date=moment)
    # A date revokes access when it is reached; clearing it does not restore access already lost.
    return Step(operation=operation, path=path, body=body, makes=makes, uses=uses, revokes=date is not None)


def _cleared(at: Address) -> Ref:
    """Return the Ref made by clearing the archive date; grants of rights depend on it."""
    return Ref(at, "(no archive date)")


def _revoked(at: Address) -> frozenset[Ref]:
    """Return the Ref made by revocations; setting an archive date and archiving depend on it."""
    return frozenset({Ref(at, "(revoked)")})
