"""The resources of the API, as in responses and bodies.

Times are epoch milliseconds in UTC where they are whole numbers.

Written by tests/api/writer.py from schemas/openapi.json; edit that one.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from lmsconf.api.endpoint_group import ListOf

Answer: TypeAlias = str | ListOf[str | dict[str, str]] | dict[str, str | ListOf[str] | None] | None


ApplicationId: TypeAlias = Literal["achievements", "analyse", "create", "learn", "follow-up"]


class GroupRef(TypedDict):
    """A group that a user is in or manages, manual or smart."""

    groupId: str
    groupType: NotRequired[str]  # Values are not shown
    name: NotRequired[str]


class UserTimeZone(TypedDict):
    """Part of another."""

    displayName: NotRequired[str]
    id: NotRequired[str]
    dstsavings: NotRequired[int]
    rawOffset: NotRequired[int]


class User(TypedDict):
    """One user, with all that the service says of them."""

    userId: str  # The user's id
    email: str  # E-mail-shaped identifier
    firstName: NotRequired[str]
    lastName: NotRequired[str]
    avatarUrl: NotRequired[str]
    # Custom-field name to its answer; the shape inside is not shown
    customFields: NotRequired[dict[str, dict[str, object]]]
    emailStatus: NotRequired[str]  # Values are not shown
    language: NotRequired[str]  # Lowercase language code
    lastLoginAt: NotRequired[int]  # Last sign-in, epoch milliseconds
    admin: NotRequired[bool]
    manager: NotRequired[bool]
    applicationIds: NotRequired[ListOf[ApplicationId]]  # Applications the user has access to
    metadata: NotRequired[dict[str, str]]  # Customer-defined
    createdAt: NotRequired[int]  # When the account was made, epoch milliseconds
    timeZone: NotRequired[UserTimeZone]
    integrationIds: NotRequired[dict[str, str]]
    archivedAt: NotRequired[int]  # When the account was archived, epoch milliseconds
    scheduledDeleteDate: NotRequired[int]  # When the account will be deleted, epoch milliseconds
    customArchiveDate: NotRequired[int]  # When the account will be archived, epoch milliseconds
    memberOfGroups: NotRequired[ListOf[GroupRef]]
    managerOfGroups: NotRequired[ListOf[GroupRef]]


class UserListEntry(TypedDict):
    """A user, as listings have it."""

    userId: str  # The user's id
    email: str  # E-mail-shaped identifier
    firstName: NotRequired[str]
    lastName: NotRequired[str]
    avatarUrl: NotRequired[str]
    # Custom-field name to its answer; the shape inside is not shown
    customFields: NotRequired[dict[str, dict[str, object]]]
    emailStatus: NotRequired[str]  # Values are not shown
    metadata: NotRequired[dict[str, str]]  # Customer-defined
    archivedAt: NotRequired[int]  # When the account was archived, epoch milliseconds
    customArchiveDate: NotRequired[int]  # When the account will be archived, epoch milliseconds


class UserExtendedEntry(TypedDict):
    """A user with groups and applications."""

    userId: str  # The user's id
    email: str  # E-mail-shaped identifier
    firstName: NotRequired[str]
    lastName: NotRequired[str]
    avatarUrl: NotRequired[str]
    emailStatus: NotRequired[str]  # Values are not shown
    admin: NotRequired[bool]
    manager: NotRequired[bool]
    memberOfGroups: NotRequired[ListOf[GroupRef]]
    managerOfGroups: NotRequired[ListOf[GroupRef]]
    availableApplications: NotRequired[ListOf[ApplicationId]]  # Application permissions available


class UserSearchEntry(TypedDict):
    """A user, as a search finds it."""

    userId: str  # The user's id
    email: str  # E-mail-shaped identifier
    firstName: NotRequired[str]
    lastName: NotRequired[str]
    avatarUrl: NotRequired[str]
    # Custom-field name to its answer; the shape inside is not shown
    customFields: NotRequired[dict[str, dict[str, object]]]
    emailStatus: NotRequired[str]  # Values are not shown
    metadata: NotRequired[dict[str, str]]  # Customer-defined
    admin: NotRequired[bool]
    manager: NotRequired[bool]
    memberOfGroups: NotRequired[ListOf[GroupRef]]
    managerOfGroups: NotRequired[ListOf[GroupRef]]
    availableApplications: NotRequired[ListOf[ApplicationId]]  # Application permissions available


class UserIds(TypedDict):
    """Users by their ids."""

    userIds: ListOf[str]


class OrderDetails(TypedDict):
    """What a purchase order of the user's is made out with."""

    disablePayment: NotRequired[bool]
    email: NotRequired[str]
    firstName: NotRequired[str]
    lastName: NotRequired[str]
    companyName: NotRequired[str]
    companyNumber: NotRequired[str]
    companyEmail: NotRequired[str]
    phone: NotRequired[str]
    phoneCode: NotRequired[str]
    address: NotRequired[Address]
    companyPayment: NotRequired[bool]
    note: NotRequired[str]
    createdAt: NotRequired[str]  # ISO 8601
    updatedAt: NotRequired[str]  # ISO 8601


class Address(TypedDict):
    """Where an order goes."""

    street: NotRequired[str]
    city: NotRequired[str]
    country: NotRequired[str]
    phone: NotRequired[str]
    zip: NotRequired[str]


class PlainCertificate(TypedDict):
    """A certificate, without the one that renews it."""

    contentId: str
    contentType: NotRequired[str]  # Course, program, SCORM package or meetup; example value COURSE
    contentName: NotRequired[str]
    certificateId: str
    issued: NotRequired[int]  # When it was issued, epoch milliseconds
    pdfUri: NotRequired[str]
    status: NotRequired[str]  # Example value ACTIVE; others are not shown
    recertificationContentId: NotRequired[str]
    expiresAt: NotRequired[int]  # When it expires, epoch milliseconds
    certificateAttachment: NotRequired[str]
    certificateAttachments: NotRequired[ListOf[Attachment]]
    expiredNotificationEnabled: NotRequired[bool]


class Attachment(TypedDict):
    """A file that belongs to a certificate."""

    url: NotRequired[str]
    name: NotRequired[str]
    createdAt: NotRequired[int]  # When it was attached, epoch milliseconds


class Certificate(PlainCertificate):
    """A certificate, with the one that renews it."""

    recertificationCertificate: NotRequired[PlainCertificate]


CustomFieldType: TypeAlias = Literal["CHOICE", "TEXT", "MULTI_SELECT"]


class CustomFieldChoice(TypedDict):
    """Part of another."""

    choiceId: str  # Generated
    name: str


class CustomField(TypedDict):
    """A question that a customer asks about each user."""

    customFieldId: str  # Generated
    id: NotRequired[str]  # Same value as customFieldId
    type: CustomFieldType
    name: str
    choices: NotRequired[ListOf[CustomFieldChoice]]
    description: NotRequired[str]
    isHidden: NotRequired[bool]
    isLocked: NotRequired[bool]
    isOptional: NotRequired[bool]


class ManualGroup(TypedDict):
    """A group whose members and managers are added by hand."""

    groupId: str  # Generated
    name: str


class SmartGroupCondition(TypedDict):
    """Part of another."""

    customFieldId: str
    choiceIds: NotRequired[ListOf[str]]
    systemCondition: NotRequired[str]


class SmartGroup(TypedDict):
    """A group whose members are computed from its conditions."""

    smartGroupId: str  # Generated
    name: str
    conditions: NotRequired[ListOf[SmartGroupCondition]]  # Combined with AND
    managers: NotRequired[ListOf[str]]  # User ids
    members: NotRequired[ListOf[str]]  # User ids computed from the conditions; only with includeMembers=true


class Condition(TypedDict):
    """A field, and choices or a systemCondition of it; that one of the two is needed is assumed."""

    customFieldId: str
    choiceIds: NotRequired[ListOf[str]]
    systemCondition: NotRequired[str]  # Example value IS_ANY; others are not shown


Conditions: TypeAlias = ListOf[Condition]


class ContentItem(TypedDict):
    """A course, program, SCORM package or meetup."""

    courseId: str  # The content's id, also of what is no course
    contentType: NotRequired[str]  # Example value COURSE; others are not shown
    name: str
    description: NotRequired[str]
    backgroundImageUrl: NotRequired[str]
    lastUpdatedAt: NotRequired[int]  # Last update, epoch milliseconds
    visibleForGroups: NotRequired[ListOf[str]]  # Group ids; EVERYONE is the group of all users
    partOfPrograms: NotRequired[ListOf[str]]
    categories: NotRequired[ListOf[str]]
    price: NotRequired[int]
    link: NotRequired[str]  # Customer-specific
    metadata: NotRequired[dict[str, str]]


class ContentTarget(TypedDict):
    """An assignment of content to a user or a group. What is a text and a time has a format that is not shown."""

    targetId: str
    targetType: str  # Values are not shown
    contentId: str
    contentType: NotRequired[str]
    mandatory: NotRequired[bool]
    name: NotRequired[str]
    startTime: NotRequired[str]  # Format is not shown
    finishTime: NotRequired[str]  # Format is not shown
    scheduleTriggerIsActive: NotRequired[bool]
    visibilityIsActive: NotRequired[bool]
    triggeredStartTime: NotRequired[str]
    triggeredFinishTime: NotRequired[str]
    createdAt: NotRequired[str]
    updatedAt: NotRequired[str]
    updatedBy: NotRequired[str]


class AllCustomFields(TypedDict):
    """All custom fields; a customer has at most 10."""

    customFields: ListOf[CustomField]


class MeetupOccasion(TypedDict):
    """Part of another."""

    occasionId: NotRequired[str]
    startTime: NotRequired[int]  # When it begins, epoch milliseconds
    attendanceCount: NotRequired[int]  # How many attend


class Meetup(TypedDict):
    """A meetup, with occasions to attend; its names are not shown."""

    contentId: NotRequired[str]
    name: NotRequired[str]
    lastUpdatedAt: NotRequired[int]  # Last update, epoch milliseconds
    partOfPrograms: NotRequired[ListOf[str]]
    categories: NotRequired[ListOf[str]]
    link: NotRequired[str]  # Public
    occasions: NotRequired[ListOf[MeetupOccasion]]


Progress: TypeAlias = Literal["APPROVED", "IN_PROGRESS", "NOT_STARTED", "EXPIRED", "FAILED"]


Enrollment: TypeAlias = Literal["MANDATORY", "OPTIONAL", "NOT_ENROLLED"]


class AttributeFilter(TypedDict):
    """Users with one of these answers to a custom field."""

    customFieldId: str
    choices: ListOf[str]  # Choice ids


class DateRange(TypedDict):
    """From start to end; either may be left out."""

    start: NotRequired[str]  # ISO 8601
    end: NotRequired[str]  # ISO 8601


class ResultOptions(TypedDict):
    """Which part of the results, in which order."""

    limit: NotRequired[int]  # The largest value is not shown
    skip: NotRequired[int]
    # Example value updatedAt; others are not shown, and those of a result are assumed
    orderBy: NotRequired[
        Literal[
            "updatedAt",
            "occuredAt",
            "enrolledAt",
            "certificateExpiresAt",
            "certificateIssuedAt",
            "percentageProgress",
            "contentId",
            "contentName",
            "userId",
            "userName",
            "userDisplayName",
            "userEmail",
            "state",
        ]
    ]
    order: NotRequired[Literal["ASC", "DESC"]]  # Example value DESC; ASC is assumed


class ParticipationResult(TypedDict):
    """How far a user is with a content item."""

    contentId: NotRequired[str]
    contentType: NotRequired[str]
    contentName: NotRequired[str]
    userId: NotRequired[str]
    userName: NotRequired[str]
    userDisplayName: NotRequired[str]
    userAvatarUrl: NotRequired[str]
    userEmail: NotRequired[str]
    state: NotRequired[str]
    occuredAt: NotRequired[int]  # Spelt so
    enrolledAt: NotRequired[int]
    certificateExpiresAt: NotRequired[int]
    certificateIssuedAt: NotRequired[int]
    contentRevision: NotRequired[int]
    percentageProgress: NotRequired[int]
    mandatory: NotRequired[bool]


class Statistics(TypedDict):
    """How many participations are in each state."""

    notStartedCount: int
    inProgressCount: int
    approvedCount: int
    failedCount: int
    expiredCount: int


class EventLogEntry(TypedDict):
    """One step of a user's progress on a content item."""

    id: str
    contentId: NotRequired[str]
    userId: NotRequired[str]
    participationId: NotRequired[str]
    status: NotRequired[str]  # Example value APPROVED
    revisionNumber: NotRequired[int]
    timestamp: NotRequired[str]  # ISO 8601
    mandatory: NotRequired[bool]
    manually: NotRequired[bool]
