"""Desired and live state of a person under manifest keys, limited to the keys that the entry declares."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from lmsconf.kinds.shared.times import shown_time
from lmsconf.kinds.user.types import RIGHTS, TEXTS, Answer, Person, PersonRow
from lmsconf.model.forms import Form
from lmsconf.model.names import normal
from lmsconf.model.values import DesiredResource
from lmsconf.planner.context import PlanContext


def wanted_form(planning: PlanContext, declared: DesiredResource[Person], answers: Mapping[str, Answer]) -> Form:
    """Return the desired state; `answers` are those of `wanted_answers`."""
    spec = declared.spec
    form: Form = {"email": declared.address.name}
    form.update({key: spec.texts[key] for key in TEXTS if key in spec.texts})
    form.update({key: spec.flags[key] for key in RIGHTS if key in spec.flags})
    if spec.applications is not None:
        form["applications"] = spec.applications
    if "metadata" in spec.declared_keys:
        form["metadata"] = dict(spec.metadata)
    if "answers" in spec.declared_keys:
        form["answers"] = dict(answers)
    if "archived" in spec.flags:
        form["archived"] = spec.flags["archived"]
    if "custom_archive_date" in spec.declared_keys:
        form["custom_archive_date"] = _shown(planning, spec.archive_date)
    return form


def live_form(planning: PlanContext, row: PersonRow, spec: Person, answers: Mapping[str, Answer]) -> Form:
    """Return the live state under the same keys, in the same order; `answers` are those of `live_answers`."""
    form: Form = {"email": row.name}
    form.update({key: normal(getattr(row, key) or "") for key in TEXTS if key in spec.texts})
    form.update({key: bool(getattr(row, key)) for key in RIGHTS if key in spec.flags})
    if spec.applications is not None:
        form["applications"] = spec.applications.comparable(row.applications or frozenset())
    if "metadata" in spec.declared_keys:
        held = dict(row.metadata or ())
        form["metadata"] = {key: held.get(key) for key in spec.metadata}
    if "answers" in spec.declared_keys:
        form["answers"] = dict(answers)
    if "archived" in spec.flags:
        form["archived"] = row.archived
    if "custom_archive_date" in spec.declared_keys:
        date = None if row.archive_date is None else datetime.fromtimestamp(row.archive_date // 1000, UTC)
        form["custom_archive_date"] = _shown(planning, date)
    return form


def _shown(planning: PlanContext, moment: datetime | None) -> str | None:
    return None if moment is None else shown_time(moment, planning.policy.timezone)


def unread(spec: Person, row: PersonRow) -> str | None:
    """Return a declared key whose live value was not read, or None if all were."""
    wanted = spec.declared_keys & {*TEXTS, "applications", "metadata", "answers"}
    keys = sorted(wanted | (set(RIGHTS) if spec.needs_rights else set()))
    return next((key for key in keys if getattr(row, key) is None), None)
