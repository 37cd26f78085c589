"""The codes of problems, each with what it means, and those for which an apply stops before its first call.

`lmsconf explain CODE` shows them; tests compare them with the code. Those of lints are in `lint_codes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from lmsconf.errors import ExitCode, Problem, ProblemsFound
from lmsconf.model.control_characters import escape_invisible
from lmsconf.model.guards import GUARD_TABLE
from lmsconf.model.plan import GuardResult, Plan

# ruff: noqa: E501  # one line a code reads best


_MEANINGS: Final = {
    **{f"guard/{name}": f"{guard.meaning} `--allow {name}=N`." for name, guard in GUARD_TABLE.items()},
    "absent/claimed": "An entry under `absent` names a resource that a declaration claims by `id:` or `previously:`. Delete one of the two entries.",
    "absent/expired": "The `until` date of an entry under `absent` is over. Delete the entry, or set a later date.",
    "absent/look-alike": "A name under `absent` is not live, and a live name looks the same or differs in case or spaces. Write the live name if it is the one to delete.",
    "absent/nothing-to-do": "What an entry under `absent` names is not live. Delete the entry.",
    "absent/other-id": "An entry under `absent` pins an `id:` that is not live, while its name is. Correct the id, or remove it.",
    "absent/other-name": "The `id:` of an entry under `absent` is live under another name. Correct the name, or the id.",
    "api/answer-lost": "The response to a write was lost, so it may or may not have been carried out. Run the command again: it looks first, and sends nothing twice.",
    "api/bad-answer": "A response was not what the API specification describes. `lmsconf doctor` checks names and behaviours of the service.",
    "api/error": "A call to the service failed.",
    "api/rejected": "The service refused a call. The message contains its reason.",
    "api/twins": "A resource exists twice after a write that was carried out twice. Delete one of the two in the product.",
    "api/unauthorized": "The service refused the token. Check that it is valid, and of this workspace.",
    "api/unreachable": "The service did not respond, or limited the rate until all retries were used. Nothing was changed by that call.",
    "apply/no-effect": "The service accepted a call, and the workspace did not change. A name or behaviour may differ: check the dialect key in the hint.",
    "apply/side-effect": "A call that changes a right, an application, a manager or an archived account also changed something else of the person, which the plan does not show. The first call of each sort is compared.",
    "apply/wrong-assumption": "A call did something else than lmsconf assumed where the API specification is silent. The run ended there and put back what it could. Set the dialect key in the hint, and run again.",
    "audience/address": "An audience is `group/NAME`, `smart_group/NAME`, `user/EMAIL` or `everyone`; the address of an assignment stands for its audience.",
    "audience/unknown": "The audience is neither live nor declared. Correct the address.",
    "base/not-planned": "The manifests of the base cannot be planned, so differences cannot be attributed to this change or to manual changes.",
    "content-target/audience": "A live assignment has an id that two audiences share, and its type does not tell which one it is for.",
    "content-target/in-progress": "People are in progress on a content that is replaced. `keep` lets them finish it.",
    "content-target/not-replaced": "A plan changes an assignment that another one replaces, and that one does not exist. Plan again.",
    "content-target/replaced-and-declared": "An assignment is declared or listed under `absent`, and another entry replaces it. Keep one of the two.",
    "content-target/replacement-gap": "A content is replaced by one that is not visible at that time, so people would have neither. Change one of the two windows.",
    "content-target/replacement-waits": "An assignment stays, because what replaces it is neither live nor in the plan. Plan both.",
    "content-target/replaces": "`replaces` or `keep` has no effect, or contradicts itself or another entry.",
    "content-target/replaces-others": "A replaced content stays assigned to audiences that the entry does not name. Add them to the entry, or list them under `absent`.",
    "content-target/replaces-unknown": "The catalog has no content of the name under `replaces`. Correct the name; once the new assignment exists, this is a note.",
    "content-target/same": "Two entries declare the same assignment, with the content under two names. Keep one.",
    "content-target/time": "The service returned a time in an unknown form. Check the dialect key content-targets.time-format.",
    "content-target/window": "`visible_until` must be later than `visible_from`.",
    "content/other-name": "The pinned content has another name in the catalog. Write that name, or correct the id.",
    "content/pin-not-live": "No content in the catalog has the pinned id. Correct the id, or remove it.",
    "content/twice": "The catalog has several contents of this name. Pin one: `content: {name: …, id: …}`.",
    "content/unknown": "The catalog has no content of this name. Correct the name.",
    "custom-field/answers-lost": "A field or choice is deleted that people have answered. Their answers are deleted with it.",
    "custom-field/answers-unknown": "A field or choice is deleted, and it is not known how many people have answered it.",
    "custom-field/choices-needed": "A field that is not live has no `choices`, so it cannot be created. Set them, or correct the name.",
    "custom-field/hidden-answers": "A call may clear answers to hidden fields that the service does not show. Declare them, or state what the service does with answers that a call omits.",
    "custom-field/too-many": "A workspace has at most ten custom fields. Declare fewer.",
    "custom-field/type": "The type of a custom field cannot change. Declare a new field that has `migrate` in place of this one.",
    "custom-field/type-needed": "A field that is not live has no `type`, so it cannot be created. Set it, or correct the name.",
    "dialect/clash": "Two parts of one request body would have the same name. Give each a name of its own under `dialect:`.",
    "dialect/unknown-key": "`dialect:` has no such key. `lmsconf help service-dialect` lists them.",
    "dialect/value": "A key under `dialect:` does not take this value.",
    "drift/ignore-expired": "The `until` date of an entry under `ignore` is over, so its differences count again.",
    "drift/ignore-nothing": "An entry under `ignore` matches no difference. Remove it if it is no longer needed.",
    "editing/not-settled": "With the edit of `drift --accept`, the resource would still differ. Edit the manifests by hand.",
    "editing/refused": "`drift --accept` cannot edit this place safely. No file was written. Edit it by hand.",
    "editing/undeclared": "No manifest declares the resource, so `drift --accept` has nothing to edit. `lmsconf export --into` writes a manifest for it.",
    "effects/not-as-predicted": "After the apply, a smart group has other members than predicted. The service may still be computing them.",
    "effects/not-compared": "The predicted members could not be compared with the workspace after the apply.",
    "error": "The command ended for the reason in the message. The hint says what to do.",
    "events/incomplete": "The events of `--events` could not all be written. The command continued without them.",
    "evidence/added": "A file is in the folder of evidence that lmsconf did not write there. Ask for the folder again.",
    "evidence/chain": "A run is missing between two runs of the folder of evidence, or a journal is not the one that the next run names.",
    "evidence/changed": "A file of a folder of evidence was changed after lmsconf wrote it. Ask for the folder again.",
    "evidence/forged": "A part of a folder of evidence does not follow from the others, such as a page that shows something else.",
    "evidence/head": "A run that `verify --head` names is not in a folder of evidence: runs at the end are missing.",
    "evidence/key": "A key cannot be used to sign or verify, or the package cryptography is not installed.",
    "evidence/missing": "A file of a folder of evidence is missing. Ask for the folder again.",
    "evidence/order": "The runs of a folder of evidence are not in the order of their numbers.",
    "evidence/signature": "The signature of a folder of evidence is missing, was changed, or is that of another key.",
    "export/in-part": "A part of a resource cannot be declared in a manifest, and was left out.",
    "export/left-out": "A resource cannot be declared in a manifest. It stays unmanaged.",
    "export/owned": "The project owns a resource that cannot be declared: the next plan would delete it. Narrow `ownership`.",
    "export/unread": "The language and applications of people were not read, because the list API omits these fields.",
    "faults/invalid": "A file of faults of the sandbox cannot be used, for the reason given. Correct it.",
    "faults/yaml": "A file of faults of the sandbox is not valid YAML.",
    "field/text": "`audience --by` needs a CHOICE or MULTI_SELECT field: a TEXT field has no choices to count.",
    "field/unknown": "There is no custom field of this name.",
    "fleet/lost": "The process that worked on a workspace ended before it had a result, or its time limit was over. Run the command again for that workspace.",
    "fleet/name": "The name of a workspace cannot be part of a file name, so it cannot be part of a fleet. Use letters, digits, `.`, `_` and `-`.",
    "fleet/no-plan": "The folder has no plan for a workspace, because planning failed there. Correct that, and plan again.",
    "fleet/scheduler": "The Dask scheduler cannot be reached, or has no worker. Check its address, its certificates and its workers.",
    "fleet/shared-token": "One variable would send its token to several hosts. Name a variable for each host, or list the hosts in LMSCONF_ALLOWED_HOSTS.",
    "fleet/stopped": "The plan of a workspace was not applied, because too many of an earlier wave failed. Correct those, and apply again.",
    "fleet/worker-project": "A Dask worker has no project, or another version of it. Update the project on the workers, or name its folder with `--worker-project`.",
    "fleet/worker-tool": "A Dask worker has another version of lmsconf. Install the same version.",
    "fmt/left": "`lmsconf fmt` left the file as it is, because it could not be formatted without changing what it means.",
    "for_each/empty": "A list under `for_each` is empty, so the entry is expanded to nothing.",
    "for_each/taken": "A name under `for_each` is also a variable. Choose another name.",
    "for_each/too-many": "`for_each` would expand to too many values. Write shorter lists, or split the project.",
    "for_each/unused": "The entry does not use a name of its `for_each`, so every copy would be the same.",
    "git/failed": "git could not be run, or refused to read the repository.",
    "guard/possible-rename": "A resource would be created beside a deleted or unmanaged one with the same content. If it is a rename, add the `previously:` line of the hint.",
    "identity/circle": "Names under `previously` form a cycle. Pin the ids instead.",
    "identity/left-alone": "A resource is declared or listed under `absent`, and `leave_alone` matches it. Remove the entry, or narrow the pattern.",
    "identity/live-twice": "Several live resources have this name. Declare the right one with its `id:`.",
    "identity/name-taken": "A live resource that keeps its name has the new name already. Choose another name, or rename the other one too.",
    "identity/pin-not-live": "No live resource has the pinned id. Correct the id, or remove it.",
    "identity/pinned-twice": "Two declarations pin the same id. Correct one.",
    "identity/previously-done": "The new name is live, so there is nothing to rename. Remove `previously`.",
    "identity/previously-not-live": "`previously` names nothing live, and the new name is not live either: the resource would be created.",
    "identity/previously-twice": "Two declarations have the same name under `previously`. Keep it at one.",
    "interrupted": "The command was interrupted before it ended.",
    "journal/failed": "The journal of the run could not be written. No further call was sent.",
    "journal/not-pruned": "A run that is no longer kept could not be deleted from `.lmsconf/runs`. The next apply tries again.",
    "journal/report-not-kept": "The report of the run could not be written beside its journal. Save the printed one.",
    "lock/held": "Another run on this machine is working on the workspace. Wait until it ends.",
    "lock/held-elsewhere": "A run on another machine holds the lock of the workspace. Wait, or remove a stale lock with `lmsconf unlock`.",
    "lock/lost": "This run no longer holds the lock, so it sent nothing more. Run it again.",
    "manifest/character": "A text contains a control or bidirectional character. Delete it.",
    "manifest/choice-both": "A choice is both included and excluded. Keep it in one list.",
    "manifest/choice-twice": "A choice is listed twice. Delete one.",
    "manifest/date": "A date must be a calendar date such as 2027-03-31.",
    "manifest/declared-and-absent": "A resource is declared, and listed under `absent`. Delete one of the two entries.",
    "manifest/declared-twice": "A resource is declared twice. Keep one entry.",
    "manifest/duplicate-key": "A mapping has a key twice. Keep one.",
    "manifest/empty": "A value is empty, and must not be.",
    "manifest/encoding": "The file is not UTF-8. Save it as UTF-8.",
    "manifest/linked": "A file of the manifests is a symbolic link. Such links are not followed.",
    "manifest/linked-folder": "A folder of the manifests is a symbolic link. Such links are not followed.",
    "manifest/missing": "A required key is missing.",
    "manifest/no-folder": "The folder of the manifests does not exist. `manifests:` in the project file names it.",
    "manifest/nothing": "The manifests contain no document, so there is nothing to plan.",
    "manifest/null": "`null`, or nothing after the colon, is only allowed where it clears a value.",
    "manifest/outside": "A path leads out of the project. Name a file inside it.",
    "manifest/reserved": "Group names with this prefix are reserved for the lock of `lock:`. Choose another name.",
    "manifest/test": "An entry under `tests` cannot be evaluated as it is.",
    "manifest/text-choices": "A TEXT field has no choices. Remove `choices`, or change the type.",
    "manifest/time": "A time is not valid, or has no offset while the project file has no `timezone`.",
    "manifest/together": "Two keys exclude each other. Keep one.",
    "manifest/too-large": "A file, or all files together, are larger than is read.",
    "manifest/too-long": "A text is longer than is allowed here.",
    "manifest/too-many": "There are more files or folders than are read.",
    "manifest/too-many-problems": "There are more problems than are listed. Correct the first ones.",
    "manifest/type": "A value has the wrong type: a text, list, mapping, number or boolean is expected.",
    "manifest/unknown-key": "No such key is allowed here. `lmsconf explain KIND` lists the keys.",
    "manifest/unreadable": "The file cannot be read.",
    "manifest/value": "The value is not one of those allowed here.",
    "migrate/absent": "A field is listed under `absent`, and `migrate` of another field names it. Remove it under `absent`: the migration deletes it once every answer is copied.",
    "migrate/copies": "How many answers a migration copies from one field to another, and how long that takes at the pace of `--max-rate`.",
    "migrate/declared": "`migrate` names a field that is declared too, and the migration deletes it. Remove its entry.",
    "migrate/left-out": "The plan leaves out the old field of a migration, so no answer is copied. Plan without `--except`.",
    "migrate/not-copied": "An answer to the old field of a migration cannot be copied, so the field is kept. Correct the answer, or write `not_copied: delete`.",
    "migrate/renamed": "`migrate` and `previously` name the same field. Keep `previously` to rename it, `migrate` to move its answers to a new field.",
    "migrate/same-field": "A field cannot be migrated to itself. Give the new field another name.",
    "migrate/to": "`to` under `migrate` is not the name of the field that has it. Remove it.",
    "migrate/twice": "Two fields name the same old field under `migrate`. Keep one.",
    "migrate/unknown-field": "No field of the name under `migrate` is live, and the new field is not live either. Correct the name.",
    "migrate/unmapped-choice": "The old field of a migration has a choice that the new field lacks. Write under `choices` what it becomes, or null.",
    "name/confusable": "A name that would be created looks the same as a live one. They differ in the characters of the hint.",
    "name/look-alike": "A name equals another one but for case and surrounding spaces. Write the exact name, `previously:` or `id:`.",
    "people/address": "A cell of a file of people is not an e-mail.",
    "people/archived-soon": "A plan sets archive dates within the next 30 days for people who have content. They lose it then; the guard `people` counts them.",
    "people/both": "A person is both included and excluded. Keep the person in one list.",
    "people/column": "The file has no such column.",
    "people/csv": "The file is not a valid CSV file.",
    "people/no-address": "A row of a file of people has no e-mail, and is skipped.",
    "people/no-file": "The file does not exist, or cannot be read.",
    "people/nobody": "A list of people from a file or set is empty. Set `allow_empty: true` to allow this.",
    "people/not-known": "The file of `--people` does not have everybody: for some audiences it is not known who gains or loses access. The file names them.",
    "people/outside": "A path leads out of the project. Name a file inside it.",
    "people/too-many": "Files of people have more rows than are read.",
    "people/unarchived": "A plan unarchives people. Effects, guards and tests count nobody who is archived when the plan is made.",
    "person/archived": "A person in the manifests is archived in the workspace.",
    "person/given-right": "A person who becomes manager of a group is given the manager right along, as the service does it. Remove the person from `managers` if that is not meant.",
    "person/loses-groups": "A person loses the manager right, and with it the groups that they manage, as the service does it. Keep the right if that is not meant.",
    "person/too-many-unknown": "More than a tenth of a list of people is not live, so `people: {unknown: skip}` does not apply.",
    "person/twice": "Several people of the workspace have this e-mail.",
    "person/unexplained": "A member or manager is in no list of people. It is shown by id, and never removed.",
    "person/not-listed": "An entry says whether somebody is archived, nobody has the e-mail in the list of people, and the list has no archived person: the service may leave them out. Pin the account with `id:`. With `archived: true` this is a warning.",
    "person/unknown": "No person of the workspace has this e-mail. Correct it, declare the person under `users:`, or set `people: {unknown: skip}`.",
    "plan/circle": "Calls of the plan depend on each other in a cycle. Make the change in two steps.",
    "plan/stale": "The plan file was edited or cut, is of another workspace, has expired, or the workspace has changed since. Plan again.",
    "probe/no-subject": "`doctor --probe` needs a person and a content that it may change, and found none.",
    "probe/not-made": "`doctor --probe` could not create its scratch objects.",
    "probe/not-restored": "What a killed `doctor --probe` changed of a person cannot be put back: do it by hand.",
    "probe/not-written": "`doctor --probe` could not write what it learned into the project file.",
    "project/consent": "An entry under `allow` must name exactly one guard.",
    "project/consent-expired": "The `until` date of an entry under `allow` is over, so it is ignored. Remove it.",
    "project/date": "A date must be a calendar date such as 2030-01-31.",
    "project/documents": "The project file must be one YAML document. Remove the line `---`.",
    "project/empty": "The project file is empty. `lmsconf init` writes one.",
    "project/folders": "`manifests:` names a folder inside another one, or uses a variable that is not a label of the workspace. Correct the list.",
    "project/foreign": "The project file is in a folder of another user, or that everybody can write to. Name the folder with -C if you trust it.",
    "project/link": "The project file is a symbolic link. Such links are not followed.",
    "project/lint-expired": "The `until` date of an entry under `lint` is over, so it is ignored. Remove it.",
    "project/lint-reason": "A lint below its default level needs a `reason`.",
    "project/missing": "There is no project file here or above. Go to the project, or run `lmsconf init`.",
    "project/name": "A workspace cannot be called `env`: LMSCONF_URL defines a workspace of that name.",
    "project/no-workspace": "No workspace is chosen. Pass --workspace, or set `default_workspace`.",
    "project/outside": "A path leads out of the project. Name a file inside it.",
    "project/pattern": "A pattern can match no address, or its backslash is ambiguous. Write a kind, a slash and a name: `group/UI *`.",
    "project/people-owned": "People are never owned, because they are never deleted.",
    "project/table": "The table of workspaces cannot be used: its columns, or a row. The problem is at the cell.",
    "project/timezone": "There is no such time zone. Write an IANA name such as Europe/Stockholm.",
    "project/token": "`workspaces:` has a token for the workspaces of a file, and names no file. Add `file:`, or move the token to its workspace.",
    "project/unknown-workspace": "The project file has no workspace of this name.",
    "project/url": "The URL of a workspace must be https, or http to this machine.",
    "read/incomplete": "A list was not read completely, so nothing is created or deleted from it. Try again.",
    "read/missing": "The snapshot does not contain what the plan needs. Save a complete snapshot.",
    "reference/except": "`except` needs a declared field with the complete list of its choices.",
    "reference/in-doubt": "A resource refers to one that has an error of its own.",
    "reference/not-planned": "A resource needs another one that does not exist yet and is not part of the plan. Plan both.",
    "reference/not-renamed": "A resource refers to a new name, and the plan leaves out the rename. Apply the rename first.",
    "reference/text-field": "A condition names choices of a TEXT field, which has none.",
    "reference/unknown-audience": "An assignment names an audience that is neither declared nor live.",
    "reference/unknown-choice": "The field has no choice of this name.",
    "reference/unknown-field": "There is no custom field of this name.",
    "reference/unknown-set": "There is no set of this name. Define it under `people_sets` or `condition_sets`.",
    "reference/unknown-window": "There is no window of this name. Define it under `windows`.",
    "reference/unknown-workspace": "The project file has no workspace of this name.",
    "refusal/admin-archived": "An administrator cannot be archived. Revoke the rights first.",
    "refusal/answer-not-cleared": "The service does not clear such an answer. Give another answer, or keep the one that is there.",
    "refusal/answers-unknown": "The old field of a migration cannot be deleted, because not all answers to it could be read. Plan again.",
    "refusal/archive-date": "An administrator or manager cannot have an archive date.",
    "refusal/changed-along": "The service changes another resource along with this one. Declare that change too, or apply one of them first.",
    "refusal/conditions-not-replaced": "Smart groups still name the old field of a migration. Declare their conditions on the new field, or write `conditions: all` under `migrate`.",
    "refusal/in-use": "A field or choice is in use by a smart group, so the service may refuse the call.",
    "refusal/live-twice": "An owned name is live more than once, so it is not clear what to delete. Declare one with its `id:`.",
    "refusal/lock-out": "The plan would leave fewer administrators than `min_admins`.",
    "refusal/manager-right": "A person must have the right of a manager to become one.",
    "refusal/metadata-merged": "The service merges metadata, so a key cannot be removed. Set an empty text.",
    "refusal/no-conditions": "A smart group would lose its last condition with a deleted field or choice. Change its conditions, or delete it too.",
    "refusal/no-free-field": "A workspace has at most ten custom fields, and a migration needs a slot for the new field until the old one is deleted. Migrate one field after the other with `--only`, or delete a field that nobody needs.",
    "refusal/not-copied": "An answer to the old field of a migration changed after the plan was made, so the field cannot be deleted. Plan again.",
    "refusal/progress-unknown": "`keep` is for people in progress, and it is not known who they are. Give the token the right to read results, or remove `keep`.",
    "refusal/protected": "`guards.protect` covers the resource: it is never deleted or renamed, and nothing is removed from it.",
    "refusal/too-many-fields": "With this plan the workspace would have more than ten custom fields.",
    "rehearsal/no-twin": "The plan cannot be rehearsed: the snapshot is redacted, incomplete, or holds something that the sandbox cannot hold. Review the plan without `--rehearse`.",
    "rename/close-name": "A name that would be created is close to a live, unmanaged one. If it is a rename, declare `previously:`.",
    "rename/not-compared": "More than 200 unmanaged resources are live, so they were not compared with creations.",
    "seed/invalid": "A seed of the sandbox cannot be used, for the reason given. Correct it.",
    "seed/yaml": "A seed of the sandbox is not valid YAML.",
    "select/ambiguous": "A name without a kind may be several resources. Write one of the addresses of the hint.",
    "select/goes-along": "`--except` excludes what is deleted along with something that is planned. Exclude both.",
    "select/nothing": "An address of `--only` or `--except` matches no declared, absent or live resource. Correct it; `*` is a wildcard.",
    "set/twice": "A set is defined twice. Keep one.",
    "set/unused": "Nothing uses the set. Remove it, or use it.",
    "sheet/audience": "A cell of the sheet names no audience. Write it as the hint says.",
    "sheet/boolean": "A cell must be true or false, or empty.",
    "sheet/column": "A column of the sheet is unknown, missing or there twice.",
    "sheet/empty-cell": "A row lacks its content or its audience. Write it, or delete the row.",
    "sheet/ignored-column": "A column of the sheet is not one that assignments have, and is ignored.",
    "sheet/nothing": "The sheet declares no assignment. Set `allow_empty: true` to allow this.",
    "sheet/too-many": "Sheets have more rows than are read.",
    "smart-group/conditions-needed": "A smart group that is not live has no `conditions`, so it cannot be created. Set them, or correct the name.",
    "snapshot/age": "How old the snapshot is that the plan was made from.",
    "snapshot/incomplete": "A list of the snapshot is not complete.",
    "snapshot/not-compared": "A person was not in the manifests when the redacted snapshot was saved, and is not compared.",
    "snapshot/other-workspace": "The snapshot is of another workspace than the plan.",
    "snapshot/redacted": "The snapshot is redacted: it only counts people who were not in the manifests.",
    "table/cell": "Cells of a workbook are merged, and only the first has a value.",
    "table/sheet": "The workbook has no such sheet.",
    "table/workbook": "A workbook that cannot be read here: its name, its format, its size, or the missing extra.",
    "test/failed": "A statement under `tests` does not hold on the planned state. Correct the manifests or the test.",
    "test/not-judged": "A statement under `tests` cannot be evaluated, so it fails.",
    "token/missing": "The token is not set, or its source has none.",
    "token/readable": "Other users of this machine can read the token file.",
    "token/refused": "The project file names a token source that the environment does not allow.",
    "trust/command": "The token command differs from that of the base. Review it, then pass --trust-project=command.",
    "trust/dialect": "The dialect differs from that of the base. Review it, then pass --trust-project=dialect.",
    "trust/token": "The token source differs from that of the base. Review it, then pass --trust-project=token.",
    "trust/url": "The URL differs from that of the base. Review it, then pass --trust-project=url.",
    "undo/conflict": "`plan --undo` leaves something alone, because others have changed it since the run, or because it cannot be undone without touching what is theirs. Change it by hand if you need to.",
    "undo/limited": "Something of what `plan --undo` takes back does not come back: an id, progress, or answers that were not read.",
    "url/host": "LMSCONF_ALLOWED_HOSTS does not list the host, so no token is sent to it.",
    "usage": "The command line is not valid. `lmsconf COMMAND --help` shows its options.",
    "user/answer": "An answer does not fit the type of its custom field.",
    "user/archive-date": "An administrator or manager cannot have an archive date.",
    "user/archived-admin": "An administrator cannot be archived.",
    "user/both": "An application is both included and excluded. Keep it in one list.",
    "user/first_name-needed": "A person who is not live has no `first_name`, so no account can be created. Set it, or correct the e-mail.",
    "user/language-needed": "A person who is not live has no `language`, so no account can be created. Set it, or correct the e-mail.",
    "user/last_name-needed": "A person who is not live has no `last_name`, so no account can be created. Set it, or correct the e-mail.",
    "user/metadata-key": "The service does not accept a key of `metadata`.",
    "user/never-deleted": "People are never deleted. Declare the person with `archived: true`.",
    "variable/list": "A variable that is a list must be the whole value.",
    "variable/syntax": "A variable is written `$(name)`; write `$$(` for a literal `$(`.",
    "variable/too-many": "Variables would expand to too many values.",
    "variable/undefined": "The project file defines no variable of this name under `vars`.",
    "window/twice": "A window is defined twice. Keep one.",
    "window/unused": "Nothing uses the window. Remove it, or use it.",
    "yaml/character": "The file contains a character that YAML does not allow, or that hides text.",
    "yaml/key": "A key must be a text.",
    "yaml/merge-key": "The merge key `<<` is not allowed. Use variables, sets or `for_each`.",
    "yaml/number": "A number has more digits than are read. Put it in quotes.",
    "yaml/syntax": "The file is not valid YAML. Names with `: ` or a leading `* & @ % !` need quotes.",
    "yaml/tag": "Tags such as `!name` are not allowed. Put the text in quotes.",
    "yaml/too-deep": "The file is nested too deep.",
    "yaml/too-long": "The file has more values than are read.",
    "yaml/too-many-aliases": "The file uses aliases too often.",
    "yaml/too-many-problems": "The file has more problems than are listed. Correct the first ones.",
    "yaml/unknown-alias": "The file has no anchor of this name before the alias.",
    "yaml/unused-anchor": "No alias uses the anchor. If `&` is part of a name, put the name in quotes.",
}
MEANINGS: Final[Mapping[str, str]] = dict(sorted(_MEANINGS.items()))
"""Code → what it means and what to do, as a sentence or two."""


def meaning_of(code: str) -> str | None:
    """Return what a code means; None for an unknown one."""
    area, slash, word = code.partition("/")
    # Files of a project go through the checks of manifests as well, and sheets through those of people.
    other = {"project": "manifest", "sheet": "people"}.get(area, area)
    return MEANINGS.get(code) or MEANINGS.get(f"{other}{slash}{word}")


CONSENT_LEAD: Final = "Correct the manifests, or allow exactly this:"
"""What stands before the command that consents."""


BlockerType: TypeAlias = Literal["guard", "refusal", "test", "lockout"]

_BY_AREA: Final[Mapping[str, BlockerType]] = {"refusal": "refusal", "test": "test", "lint": "test"}
"""First part of a problem code → blocker type. A plan with such an error can be made and shown, but not applied.

A lint at the level `error` is a test that the manifests fail.
"""


class Blocker(Struct, frozen=True, kw_only=True):
    """One reason to stop. allow: the consent that lifts it, None if nothing does. hint: what to do instead."""

    type: BlockerType
    name: str
    message: str
    allow: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        """Return the reason as one sentence: `Guard deletes: 2 deletions, and the limit is 1`."""
        return f"Guard {self.name}: {self.message}" if self.type == "guard" else self.message


def is_blocking(problem: Problem) -> bool:
    """Whether a plan with this problem can be made and shown, but not applied."""
    return problem.is_error and problem.code.partition("/")[0] in _BY_AREA


def blockers(plan: Plan) -> tuple[Blocker, ...]:
    """Return everything that would stop an apply: first what no consent lifts, then tripped guards."""
    return (
        *(_refusal(problem) for problem in plan.all_problems if is_blocking(problem)),
        *(_guard(plan, guard) for guard in plan.guards if guard.tripped),
    )


def refuse_blocked(plan: Plan) -> None:
    """Raises ProblemsFound with exit 4 if the plan has blocking problems, failing tests or tripped guards."""
    blocking = [problem for problem in plan.all_problems if is_blocking(problem)]
    guards = [_as_problem(plan, blocker) for blocker in blockers(plan) if blocker.allow is not None]
    if blocking or guards:
        raise ProblemsFound([*blocking, *guards], exit=ExitCode.BLOCKED)


def _as_problem(plan: Plan, guard: Blocker) -> Problem:
    losses = _losses(plan) if guard.name == "people" else ()
    hint = "\n".join(filter(None, [guard.hint, *losses, f"{CONSENT_LEAD} {consent_command(plan)}"]))
    return Problem(code=f"guard/{guard.name}", message=f"{guard}. Apply stops here.", hint=hint)


def _losses(plan: Plan) -> Iterator[str]:
    """Yield which contents most people lose, or why that is not known: a plan from a file is not shown again."""
    losses = sorted((one for one in plan.effects.contents if one.counts.lose), key=lambda one: -(one.counts.lose or 0))
    yield from (
        f"{loss.counts.lose:,} of {loss.before or 0:,} {'loses' if loss.counts.lose == 1 else 'lose'} "
        f"{escape_invisible(loss.content)}"
        for loss in losses[:_LISTED]
    )
    if len(losses) > _LISTED:
        yield f"… and {len(losses) - _LISTED:,} more contents"
    if plan.effects.people.lose is None:
        yield from map(escape_invisible, plan.effects.reasons[:_LISTED])


def consent_command(plan: Plan) -> str | None:
    """Return the command that allows exactly what the guards counted; None if no guard tripped."""
    tripped = any(guard.tripped for guard in plan.guards)
    return " ".join([plan.command, *allowances(plan.guards)]) if tripped else None


def reviewed_consent(plan: Plan) -> str | None:
    """Return the line of the project file that allows the same, with its date left to write; None if no guard tripped."""
    given = [(guard.allow or "").partition("=") for guard in plan.guards if guard.tripped]
    entries = [f"{{{name}: {number}, reason: …, until: YYYY-MM-DD}}" for name, _, number in given]
    return f"allow: [{', '.join(entries)}]" if entries else None


def allowances(guards: Iterable[GuardResult]) -> Iterator[str]:
    """Yield `--allow removals=45` for each guard that is tripped or was allowed so, not by the project file."""
    given = (guard.allow or "" for guard in guards if guard.tripped or guard.allowed_by == "--allow")
    return (f"--allow {quote(allow)}" for allow in given)


def _refusal(problem: Problem) -> Blocker:
    kind = "lockout" if problem.code == "refusal/lock-out" else _BY_AREA[problem.code.partition("/")[0]]
    return Blocker(type=kind, name=problem.code, message=problem.message, hint=problem.hint)


_LISTED: Final = 5
"""How many of the problems that a guard counted a blocker's hint lists; each change lists all of its own."""


def _guard(plan: Plan, guard: GuardResult) -> Blocker:
    codes = GUARD_TABLE[guard.name].listed_by if guard.name in GUARD_TABLE else ()
    listed = [
        f"{escape_invisible(one.message)}. {one.hint or ''}".rstrip() for one in plan.all_problems if one.code in codes
    ]
    more = [f"… and {len(listed) - _LISTED:,} more"] if len(listed) > _LISTED else []
    return Blocker(
        type="guard",
        name=guard.name,
        message=guard.reason or "",
        allow=guard.allow,
        hint="\n".join([*listed[:_LISTED], *more]) or None,
    )
