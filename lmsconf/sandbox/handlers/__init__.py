"""The handlers of all operations, by subject.

CHOICES is what they do where the specification is silent.
Each of the choices is unconfirmed for the real service. Names and behaviours that a project can override belong to the
dialect, in the API description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CHOICES: Final[Mapping[str, str]] = {
    "errors": "An error is {error: code, message}: 400 for what a request says, 401 for its credential, 404 for what "
    "its path names, 405 for its method, 403 and 409 for the state of things.",
    "ids": "Unknown ids in a path are 404, in a body 400.",
    "silent-fields": "What the workspace does not know is left out: avatarUrl, emailStatus, lastLoginAt, timeZone, "
    "scheduledDeleteDate.",
    "auth.lifetime": "A pre-signed link lasts 15 minutes and leads to sandbox.invalid.",
    "auth.archived": "No link is made for an archived user: 400.",
    "users.create.known": "Creating an account for an e-mail that has one answers its id and changes nothing.",
    "users.create.first": "A new account has the language en, the application learn, and no rights.",
    "users.email.shape": "An e-mail is text, @, and a domain with a dot; case makes no difference to whose it is.",
    "users.email.taken": "An e-mail that another account has is 409.",
    "users.language.shape": "A language is two or three lowercase letters, with a region after a hyphen if wanted.",
    "users.archive.again": "Archiving the archived and unarchiving the active change nothing.",
    "users.archive-date.past": "A custom archive date that has come archives as of that date; unarchiving ends it.",
    "users.archive-date.grant": "Making somebody admin or manager ends their custom archive date.",
    "users.delete.all": "With an account go its answers, memberships, targets, order details, certificates, history.",
    "users.search.pairs": "A search finds those who hold every pair of the metadata, exactly as given.",
    "users.answers.twins": "Of two fields with one name a person shows the answer to the younger.",
    "users.applications.own": "Applications stand by themselves: admin and manager rights neither give nor take any.",
    "users.access.again": "Adding an application that is there, or removing one that is not, changes nothing.",
    "orders.first": "Before anything is stored, order details say only that payments are not disabled.",
    "orders.replace": "PUT replaces the details as a whole; only disable-payment turns disablePayment.",
    "certificates.grouped": "The grouped view has user ids as keys, and of each user the certificate issued last.",
    "certificates.flat": "The flat view is a list `certificates`, each with its userId.",
    "certificates.expired": "A certificate is ACTIVE until it expires, and EXPIRED from then on.",
    "certificates.one": "A person has one certificate for a content; a new one takes the place of the old.",
    "certificates.start.dates": "Issued is now or before, and expiry is after that.",
    "certificates.start.account": "The account has to be active, and contentType the content's own.",
    "certificates.start.at-once": "Generation is done at once, and its progress record says DONE.",
    "certificates.start.participation": "It records the participation as APPROVED, with an event that is manual.",
    "certificates.delete.history": "Removing a certificate leaves the participation and its history.",
    "certificates.caller": "Who asks for the status of a generation makes no difference.",
    "meetups.visible": "Meetups are those that the groups see through assignments; EVERYONE stands for no other group.",
    "analytics.rows": "Results are about active people: one for each content they are enrolled in or took part in.",
    "analytics.enrollment": "Any assignment enrols, whatever its window; MANDATORY if one of them is; taking part in "
    "what is not assigned is NOT_ENROLLED.",
    "analytics.state": "Without a participation the state is NOT_STARTED; an expired certificate makes it EXPIRED.",
    "analytics.ranges": "Both ends of a range belong to it, and either may be left out.",
    "analytics.attributes": "All attributes have to fit, each with one of its choices.",
    "analytics.order": "Results come last changed first, 100 to a page, unless options say otherwise.",
    "smart-groups.archived": "Archived people are in no smart group.",
    "smart-groups.left": "With a field go the conditions on it, with a choice its place in them; a group that has no "
    "condition left has no members.",
    "targets.groups": "A group's targets go with it.",
}
"""Name → choice. Each has a test that demonstrates it."""
