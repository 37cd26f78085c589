"""Lessons on scratch accounts: the body fields of creating a user. Only for projects that create people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import Final, cast

from lmsconf.api.spec.dialect_keys import Value, candidate_values
from lmsconf.api.spec.operations import USERS
from lmsconf.doctor.probe.scratch_objects import ScratchObjects, reason_of_leftover
from lmsconf.doctor.probe.trial_client import TrialClient, required
from lmsconf.errors import Rejected
from lmsconf.model.canonical_json import Json

EMAIL: Final = "users.create.email"
FIRST: Final = "users.create.firstName"
LAST: Final = "users.create.lastName"
LANGUAGE: Final = "users.create.language"
WELCOME: Final = "users.create.sendWelcomeEmail"
KEYS: Final = (EMAIL, FIRST, LAST, LANGUAGE, WELCOME)
_NAMES: Final[Mapping[str, str]] = {FIRST: "firstName", LAST: "lastName"}
_LANGUAGES: Final = ("en", "sv")
"""Two, because a new account may have one of them by default."""
_UNKNOWN_NAME: Final = "lmsconfProbeOfUnknownNames"
Trying = Mapping[str, Value]


class AccountLessons:
    """Each try creates another account, so that the effect of an earlier try is not mistaken for its own."""

    def __init__(self, client: TrialClient, scratch: ScratchObjects) -> None:
        self._client, self._scratch, self._number = client, scratch, count(1)
        self._names: Trying | None = None
        self.accounts: list[str] = []

    def probe_keys(self) -> None:
        """Probe all keys. The e-mail is first: without an account nothing can be observed.

        Raises Undetermined if the other keys cannot be probed.
        """
        required(self._client.try_candidates(EMAIL, self._has_email), "no scratch account could be created")
        required(self._is_deletable(), reason_of_leftover(USERS))
        for key in _NAMES:
            self._client.try_candidates(key, partial(self._shows_name, key))
        self._client.try_candidates(LANGUAGE, self._shows_language)
        self._learn_welcome()

    def _is_deletable(self) -> bool:
        """Whether the account can be deleted: otherwise no other is created."""
        self._scratch.delete_created(USERS)
        try:
            self._client.reader.get("users.get", path={"userId": self.accounts[-1]})
        except Rejected:
            self.accounts.clear()
            return True
        return False

    def _has_email(self, value: Value) -> bool:
        """Whether an account is created, by e-mail alone or with names, if the service requires them."""
        for names in self._families():
            self._names = names
            if self._create({}, {EMAIL: value}) is not None:
                return True
        return False

    def _families(self) -> Iterator[Trying | None]:
        """Yield None, then the pairs of first and last name that belong together."""
        yield None
        first, last = (candidate_values(key, self._client.project_spec.behaviour(key)) for key in (FIRST, LAST))
        yield from ({FIRST: one, LAST: other} for one, other in zip(first, last, strict=False))

    def _shows_name(self, key: str, value: Value) -> bool:
        """Return whether a name is shown as sent."""
        return self._create({_NAMES[key]: f"Probe {next(self._number)}"}, {key: value}) is not None

    def _shows_language(self, value: Value) -> bool:
        return all(self._create({"language": one}, {LANGUAGE: value}) is not None for one in _LANGUAGES)

    def _learn_welcome(self) -> None:
        """Probe the welcome flag. It has no visible effect, so only a service that rejects unknown names reveals it."""
        required(
            not self._takes_welcome(_UNKNOWN_NAME),
            "the service accepts unknown names, and a mail that is not sent leaves no trace",
        )
        self._client.try_candidates(WELCOME, self._takes_welcome, "accepted by a service that refuses unknown names")

    def _takes_welcome(self, value: Value) -> bool:
        return self._create({"sendWelcomeEmail": False}, {WELCOME: value}) is not None

    def _create(self, fields: Mapping[str, Json], trying: Trying) -> dict[str, Json] | None:
        """Create an account; return it if it exists and shows everything that was sent."""
        address = self._scratch.unique_email(f"user-{next(self._number)}")
        required = {"firstName": "Probe", "lastName": "Probe"} if self._names else {}
        words = {
            **{key: name for key, name in (self._names or {}).items() if not self._client.is_determined(key)},
            **trying,
        }
        sent = self._client.send("users.create", fields={"email": address, **required, **fields}, trying=words)
        row = self._scratch.find_account(address, sent)
        if row is None:
            return None
        id = str(row["userId"])
        self.accounts.append(id)
        shown = {**row, **cast("dict[str, Json]", self._client.reader.get("users.get", path={"userId": id}))}
        compared = (name for name in fields if name != "sendWelcomeEmail")
        return shown if all(shown.get(name) == fields[name] for name in compared) else None
