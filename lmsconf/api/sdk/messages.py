"""Bodies and responses of single operations.

Times are epoch milliseconds in UTC where they are whole numbers.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from lmsconf.api.endpoint_group import ListOf
from lmsconf.api.sdk.resources import (
    Certificate,
    ContentItem,
    ContentTarget,
    ManualGroup,
    Meetup,
    ParticipationResult,
    Statistics,
    UserExtendedEntry,
    UserListEntry,
    UserSearchEntry,
)


class AuthCreateAnswer(TypedDict):
    """Of auth.create."""

    preSignedInLink: str  # The link; it holds a secret that signs the user in
    expiresAt: int  # When the link expires, epoch milliseconds


class UsersListAnswer(TypedDict):
    """Of users.list."""

    users: ListOf[UserListEntry]
    skip: NotRequired[int]
    limit: NotRequired[int]
    filter: NotRequired[str]
    matchCount: NotRequired[int]


class UsersCreateAnswer(TypedDict):
    """Of users.create."""

    userId: str  # The user's id
    newUser: bool  # Whether the account is new; false: it existed


class UsersExtendedInfoAnswer(TypedDict):
    """Of users.extended-info."""

    users: ListOf[UserExtendedEntry]
    skip: NotRequired[int]
    limit: NotRequired[int]
    filter: NotRequired[str]
    matchCount: NotRequired[int]


class UsersSearchAnswer(TypedDict):
    """Of users.search."""

    users: ListOf[UserSearchEntry]
    matchCount: NotRequired[int]


class UsersSetOrderDetailsAddress(TypedDict):
    """Of users.set-order-details."""

    street: NotRequired[str]
    city: NotRequired[str]
    country: NotRequired[str]
    phone: NotRequired[str]
    zip: NotRequired[str]


class UserCertificatesListAnswerCertificate(Certificate):
    """Of user-certificates.list."""

    userId: NotRequired[str]  # Whose it is


class UserCertificatesListAnswer(TypedDict):
    """Of user-certificates.list."""

    usersWithCertificates: NotRequired[dict[str, Certificate]]  # The grouped view, by a key that is a text
    # The flat view, whose shape is not shown
    certificates: NotRequired[ListOf[UserCertificatesListAnswerCertificate]]


class UserCertificatesOfUserAnswer(TypedDict):
    """Of user-certificates.of-user."""

    userId: str
    certificates: ListOf[Certificate]


class CertificatesStartAnswer(TypedDict):
    """Of certificates.start."""

    progressId: str  # The progress record's id


class CertificatesStatusAnswer(TypedDict):
    """Of certificates.status."""

    progressId: NotRequired[str]
    status: NotRequired[str]  # Its state; values are not shown


class ManualGroupsListAnswer(TypedDict):
    """Of manual-groups.list."""

    groups: ListOf[ManualGroup]


class ManualGroupsCreateAnswer(TypedDict):
    """Of manual-groups.create."""

    groupId: str


class SmartGroupsListAnswerSmartGroup(TypedDict):
    """Of smart-groups.list."""

    smartGroupId: str
    name: str


class SmartGroupsListAnswer(TypedDict):
    """Of smart-groups.list."""

    smartGroups: ListOf[SmartGroupsListAnswerSmartGroup]


class SmartGroupsCreateAnswer(TypedDict):
    """Of smart-groups.create."""

    smartGroupId: str


class CustomFieldsCreateChoice(TypedDict):
    """Of custom-fields.create."""

    name: str


class CustomFieldsReplaceChoice(TypedDict):
    """Of custom-fields.replace."""

    choiceId: NotRequired[str]
    name: str


class ContentListAnswer(TypedDict):
    """Of content.list."""

    courses: ListOf[ContentItem]
    skip: NotRequired[int]
    limit: NotRequired[int]
    total: NotRequired[int]


class ContentMeetupsAnswer(TypedDict):
    """Of content.meetups."""

    meetups: ListOf[Meetup]


class ContentTargetsListAnswer(TypedDict):
    """Of content-targets.list."""

    targets: ListOf[ContentTarget]


class AnalyticsResultsAnswer(TypedDict):
    """Of analytics.results."""

    list: ListOf[ParticipationResult]


class AnalyticsStatisticsAnswer(TypedDict):
    """Of analytics.statistics."""

    statistics: Statistics
