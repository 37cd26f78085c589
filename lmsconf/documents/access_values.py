"""Reports on people → JSON, `lmsconf.access/1` and `lmsconf.audience/1`."""

from __future__ import annotations

from typing import Final

from lmsconf.documents.change_values import problem_json
from lmsconf.documents.document import TOOL, render_json, string_list
from lmsconf.model.access import (
    AccessRoute,
    AudienceReport,
    ConditionResult,
    HeldContent,
    PersonAccess,
    PersonContent,
    ReportHeader,
    RouteSide,
)
from lmsconf.model.canonical_json import Json

ACCESS_FORMAT: Final = "lmsconf.access/1"
AUDIENCE_FORMAT: Final = "lmsconf.audience/1"


def access_json(report: PersonAccess) -> str:
    """Return what a person has, and why, as a document."""
    return render_json(
        {
            "format": ACCESS_FORMAT,
            **_header_json(report.header),
            "email": report.email,
            "is_live": report.is_live,
            "stays": report.stays,
            "content": report.content,
            "contents": [_content_json(content) for content in report.contents],
        }
    )


def audience_json(report: AudienceReport) -> str:
    """Return who is in an audience as a document."""
    answers: list[Json] = [
        {"state": answer.state.value, "choice": answer.choice, "before": answer.before, "after": answer.after}
        for answer in report.answers
    ]
    members: list[Json] | None = None
    if report.members is not None:
        members = [{"email": member.email, "before": member.before, "after": member.after} for member in report.members]
    return render_json(
        {
            "format": AUDIENCE_FORMAT,
            **_header_json(report.header),
            "address": str(report.address),
            "is_live": report.is_live,
            "stays": report.stays,
            "before": report.before,
            "after": report.after,
            "join": report.join,
            "leave": report.leave,
            "by": report.by,
            "answers": answers,
            "members": members,
        }
    )


def _header_json(header: ReportHeader) -> dict[str, Json]:
    return {
        "tool": TOOL,
        "created_at": header.created_at,
        "workspace": {"name": header.workspace, "url": header.url},
        "people": header.people,
        "planned": header.planned,
        "basis": header.basis.value,
        "reasons": string_list(header.reasons),
        "requests": header.requests,
        "problems": [problem_json(problem) for problem in header.problems],
    }


def _content_json(content: PersonContent) -> Json:
    return {
        "content": content.content,
        "id": content.id,
        "change": content.change,
        "before": _held_json(content.before),
        "after": _held_json(content.after),
        "assignments": [_route_json(route) for route in content.routes],
    }


def _held_json(held: HeldContent | None) -> Json:
    return None if held is None else {"has": held.word, "from": held.start, "until": held.finish}


def _route_json(route: AccessRoute) -> Json:
    return {
        "address": str(route.address),
        "audience": str(route.audience),
        "before": _side_json(route.before),
        "after": _side_json(route.after),
    }


def _side_json(side: RouteSide | None) -> Json:
    if side is None:
        return None
    return {
        "mandatory": side.mandatory,
        "visible_from": side.visible_from,
        "visible_until": side.visible_until,
        "is_over": side.is_over,
        "member": side.member,
        "conditions": [_condition_json(condition) for condition in side.conditions],
    }


def _condition_json(condition: ConditionResult) -> Json:
    return {
        "field": condition.field,
        "choices": string_list(condition.choices),
        "system_condition": condition.system_condition,
        "answer": None if condition.answer is None else string_list(condition.answer),
        "met": condition.met,
    }
