"""Sequential calls with candidate dialect values, and the lessons recorded from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from lmsconf.api.concurrent_requests import ConcurrentReader, WorkerPool
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_keys import Value, candidate_values
from lmsconf.doctor.report import DialectLesson, LessonVerdict
from lmsconf.errors import InvalidResponse, LmsconfError, ProblemsFound, Rejected, WriteOutcomeUnknown
from lmsconf.model.canonical_json import Json

if TYPE_CHECKING:
    from lmsconf.api.client import Client

Found = TypeVar("Found")
_SHOWN: Final = 4
_SERVER: Final = 500


class Undetermined(LmsconfError):
    """Why a lesson has no result: the service did not create a scratch object, or something else that it needs."""

    code = "probe/not-made"


def required(value: Found | None, reason: str) -> Found:
    """Return what a lesson needs. Raises Undetermined with the reason if that is missing, false or empty."""
    if not value:
        raise Undetermined(reason)
    return value


class WriteResult(Struct, frozen=True):
    """The result of one write. Only reading back shows whether it had an effect."""

    accepted: bool
    status: int | None = None
    reason: str = ""
    answer: Json = None

    @property
    def refused(self) -> bool:
        """Whether it was certainly not carried out."""
        return not self.accepted and (self.status is None or self.status < _SERVER)


class TrialClient:
    """Call through a pool of one worker, so that calls are carried out in the order sent.

    words: the dialect as far as it is confirmed. project_spec: the API description with the project's own dialect.
    along: values that were accepted and are not confirmed yet. last: the reason of the last refusal.
    """

    def __init__(self, pool: WorkerPool, words: Mapping[str, Value]) -> None:
        self._pool = pool
        self.project_spec = ApiSpec(words)
        self.words = dict(words)
        self.spec = self.project_spec
        self.lessons: list[DialectLesson] = []
        self.along: dict[str, Value] = {}
        self.last = ""

    def likely_value(self, key: str) -> str:
        """The value of a key as far as it is known."""
        known = self.spec.behaviour(key)
        return known if self.is_determined(key) else str(self.along.get(key, known))

    @property
    def reader(self) -> ConcurrentReader:
        """Read with the confirmed dialect."""
        return ConcurrentReader(self._pool, self.spec)

    def send(
        self,
        operation: str,
        *,
        path: Mapping[str, str] | None = None,
        fields: Mapping[str, object] | None = None,
        trying: Mapping[str, Value] | None = None,
    ) -> WriteResult:
        """Send one write with the values being tried. Raises ApiError only for failures that affect every call."""
        try:
            spec = ApiSpec({**self.words, **trying}) if trying else self.spec
        except ProblemsFound as clash:
            return self._refused(WriteResult(False, reason=clash.problems[0].message))
        body = None if spec[operation].body is None else spec.body_to_wire(operation, **(fields or {}))

        def call(client: Client) -> Json:
            client.spec = spec
            return client.call(operation, path=path, body=body)

        try:
            answer = self._pool.submit(call).result()
        except InvalidResponse:
            # It was carried out; only the response is unusable, and the result is read back anyway.
            return WriteResult(True)
        except (Rejected, WriteOutcomeUnknown) as refused:
            lost = isinstance(refused, WriteOutcomeUnknown)
            return self._refused(WriteResult(False, _SERVER if lost else refused.status, refused.message))
        return WriteResult(True, answer=answer)

    def learn(self, keys: Iterable[str], lesson: Callable[[], None]) -> bool:
        """Run the lesson on these keys. If it cannot go on, those without a result get the reason: then False."""
        try:
            lesson()
        except Undetermined as refused:
            self.record_undetermined(keys, refused.message)
            return False
        return True

    def try_candidates(
        self, key: str, works: Callable[[Value], bool], reason: str = "confirmed by reading back"
    ) -> bool:
        """Try values until one works, and record the result. Returns whether one was found."""
        value = self.first_working_value(key, works)
        self.conclude(key, (value is None, None, self.failure_reason(key)), (True, value, reason))
        return value is not None

    def first_working_value(self, key: str, works: Callable[[Value], bool]) -> Value | None:
        """The first value that works."""
        self.last = ""
        return next(filter(works, candidate_values(key, self.project_spec.behaviour(key))), None)

    def failure_reason(self, key: str) -> str:
        """The message that no value worked, with the last rejection."""
        tried = candidate_values(key, self.project_spec.behaviour(key))
        shown = ", ".join(map(str, tried[:_SHOWN]))
        more = f" and {len(tried) - _SHOWN} more" if len(tried) > _SHOWN else ""
        last = f"; the last refusal was: {self.last}" if self.last else ""
        return f"none of {shown}{more} had an effect{last}"

    def conclude(self, key: str, *cases: tuple[object, Value | None, str]) -> None:
        """Record the first case that holds: its value, and the reason. Without a value, the key is undetermined."""
        value, reason = next((value, reason) for holds, value, reason in cases if holds)
        if value is None:
            self.record_undetermined((key,), reason)
        else:
            self.record_value(key, value, reason)

    def record_value(self, key: str, value: Value, reason: str) -> None:
        """Record a value, and use it from now on."""
        now = self.project_spec.behaviour(key)
        self.lessons.append(
            DialectLesson(key, LessonVerdict.CONFIRMED if now == str(value) else LessonVerdict.FOUND, value, reason)
        )
        self.words[key] = value
        self.spec = ApiSpec(self.words)

    def revise_value(self, key: str, value: Value, reason: str) -> None:
        """Record another value of a key that was determined before."""
        self.lessons[:] = [lesson for lesson in self.lessons if lesson.key != key]
        self.record_value(key, value, reason)

    def record_undetermined(self, keys: Iterable[str], reason: str) -> None:
        """Record why keys were not determined, those that have no result yet."""
        known = {lesson.key for lesson in self.lessons}
        self.lessons += [DialectLesson(key, LessonVerdict.UNKNOWN, None, reason) for key in keys if key not in known]

    def is_determined(self, key: str) -> bool:
        """Whether a key was determined in this run."""
        return any(lesson.key == key and lesson.verdict is not LessonVerdict.UNKNOWN for lesson in self.lessons)

    def _refused(self, sent: WriteResult) -> WriteResult:
        self.last = sent.reason
        return sent
