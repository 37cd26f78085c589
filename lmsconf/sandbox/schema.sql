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

CREATE INDEX people_by_email ON people (casefold(email));
CREATE INDEX people_to_archive ON people (custom_archive_at) WHERE custom_archive_at IS NOT NULL AND archived_at IS NULL;
CREATE INDEX choices_by_field ON choices (field, position);
CREATE INDEX answers_by_choice ON answers (field, choice, person);
CREATE INDEX groups_by_kind ON groups (kind, seq);
CREATE INDEX members_by_person ON members (person);
CREATE INDEX managers_by_person ON managers (person);
CREATE INDEX conditions_by_field ON conditions (field);
CREATE INDEX condition_choices_by_choice ON condition_choices (choice);
CREATE INDEX targets_by_audience ON targets (audience, content);
CREATE INDEX targets_by_type ON targets (kind, type) WHERE type IS NOT NULL;
CREATE INDEX certificates_by_content ON certificates (content);
CREATE INDEX participations_by_content ON participations (content);
CREATE INDEX events_by_participation ON events (participation, at);
