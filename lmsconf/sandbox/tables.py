"""The SQL schema of the workspace. Ids are the service's own texts; `seq` preserves creation order.

An answer to a TEXT field is in `text`, with an empty `choice`; every other answer names a choice. Both kinds of groups
share one table, because people, managers and targets reference them in the same way. Members of a smart group are
computed on request, and so are not stored. Values that are never queried by their parts are JSON: metadata,
applications, attachments, order details, and the details of a content that only the catalog shows. The `type` of a
target is the `targetType` that a snapshot has for it; without one it is the kind.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 5

TABLES: Final = """
CREATE TABLE counters (prefix TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE people (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, email TEXT NOT NULL, first_name TEXT NOT NULL,
    last_name TEXT NOT NULL, admin INTEGER NOT NULL, manager INTEGER NOT NULL, archived_at INTEGER,
    created_at INTEGER NOT NULL, custom_archive_at INTEGER, language TEXT NOT NULL DEFAULT 'en',
    metadata TEXT NOT NULL DEFAULT '{}', applications TEXT NOT NULL DEFAULT '[]'
);
CREATE TABLE links (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL, redirect TEXT NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE TABLE orders (
    person TEXT PRIMARY KEY, details TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE fields (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, type TEXT NOT NULL, description TEXT,
    hidden INTEGER, locked INTEGER, optional INTEGER
);
CREATE TABLE choices (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, field TEXT NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL
);
CREATE TABLE answers (
    person TEXT NOT NULL, field TEXT NOT NULL, choice TEXT NOT NULL DEFAULT '', text TEXT,
    PRIMARY KEY (person, field, choice)
) WITHOUT ROWID;
CREATE TABLE groups (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE members (grp TEXT NOT NULL, person TEXT NOT NULL, PRIMARY KEY (grp, person)) WITHOUT ROWID;
CREATE TABLE managers (grp TEXT NOT NULL, person TEXT NOT NULL, PRIMARY KEY (grp, person)) WITHOUT ROWID;
CREATE TABLE conditions (
    grp TEXT NOT NULL, position INTEGER NOT NULL, field TEXT NOT NULL, system_condition TEXT,
    PRIMARY KEY (grp, position)
) WITHOUT ROWID;
CREATE TABLE condition_choices (
    grp TEXT NOT NULL, position INTEGER NOT NULL, place INTEGER NOT NULL, field TEXT NOT NULL, choice TEXT NOT NULL,
    PRIMARY KEY (grp, position, choice)
) WITHOUT ROWID;
CREATE TABLE contents (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, type TEXT NOT NULL, name TEXT NOT NULL,
    description TEXT NOT NULL, price INTEGER NOT NULL, updated_at INTEGER NOT NULL, details TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE targets (
    seq INTEGER PRIMARY KEY, content TEXT NOT NULL, kind TEXT NOT NULL, audience TEXT NOT NULL,
    mandatory INTEGER NOT NULL, start INTEGER, finish INTEGER, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, type TEXT, UNIQUE (content, kind, audience)
);
CREATE TABLE certificates (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL, content TEXT NOT NULL,
    issued INTEGER NOT NULL, expires_at INTEGER, recertification TEXT, notify INTEGER NOT NULL,
    attachments TEXT NOT NULL, UNIQUE (person, content)
);
CREATE TABLE generations (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL, content TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE TABLE participations (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL, content TEXT NOT NULL,
    state TEXT NOT NULL, percentage INTEGER NOT NULL, revision INTEGER NOT NULL, enrolled_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, UNIQUE (person, content)
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, participation TEXT NOT NULL, status TEXT NOT NULL,
    revision INTEGER NOT NULL, at INTEGER NOT NULL, mandatory INTEGER NOT NULL, manually INTEGER NOT NULL
);
"""

UPGRADES: Final = {
    2: "ALTER TABLE targets ADD COLUMN type TEXT",
    3: "CREATE INDEX targets_by_type ON targets (kind, type) WHERE type IS NOT NULL",
    4: "ALTER TABLE conditions DROP COLUMN any_answer",
}
"""Version of an older file → the statement that makes it the next version."""

INDEXES: Final = {
    "people_by_email": "people (casefold(email))",
    "people_to_archive": "people (custom_archive_at) WHERE custom_archive_at IS NOT NULL AND archived_at IS NULL",
    "choices_by_field": "choices (field, position)",
    "answers_by_choice": "answers (field, choice, person)",
    "groups_by_kind": "groups (kind, seq)",
    "members_by_person": "members (person)",
    "managers_by_person": "managers (person)",
    "conditions_by_field": "conditions (field)",
    "condition_choices_by_choice": "condition_choices (choice)",
    "targets_by_audience": "targets (audience, content)",
    "targets_by_type": "targets (kind, type) WHERE type IS NOT NULL",
    "certificates_by_content": "certificates (content)",
    "participations_by_content": "participations (content)",
    "events_by_participation": "events (participation, at)",
}
"""Indexes besides the keys. A seed is loaded before they are created, which halves the time."""
