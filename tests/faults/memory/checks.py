"""What must hold when all is quiet again: each check tells what does not, in words."""

from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import pairwise

from .found import Found, Row
from .journal import Done, Life
from .model import SHARED, Operation, User, apply
from .words import words_in
from .workload import SHARED_USERS, shared_talk

_PARENTS = (
    ("memory_contents", "memory_id", "memories", "memory_id"),
    ("memory_contents", "superseded_by", "memory_contents", "content_id"),
    ("memory_contents", "run_id", "memory_runs", "run_id"),
    ("memory_evidence", "content_id", "memory_contents", "content_id"),
    ("memory_evidence", "message_id", "conversation_messages", "message_id"),
    ("memory_evidence", "conversation_id", "conversations", "conversation_id"),
    ("memory_evidence", "source", "memory_runs", "run_id"),
    ("memory_terms", "memory_id", "memories", "memory_id"),
    ("conversations", "memory_id", "memories", "memory_id"),
    ("conversation_messages", "conversation_id", "conversations", "conversation_id"),
    ("conversation_messages", "memory_id", "memories", "memory_id"),
    ("memory_runs", "memory_id", "memories", "memory_id"),
    ("memory_runs", "conversation_id", "conversations", "conversation_id"),
    ("memory_run_stages", "run_id", "memory_runs", "run_id"),
    ("memory_run_failures", "run_id", "memory_runs", "run_id"),
)
_STAGES = {"modification", "update", "mind"}


def check(found: Found, lives: Iterable[Life]) -> Iterator[str]:
    """All that does not hold of what was done in these lives."""
    tasks = [done for life in lives for done in life.tasks.values()]
    allowed: set[str] = set()
    for may_be in _users(tasks):
        yield from _check_user(found, may_be, allowed)
    for number in range(SHARED_USERS):
        yield from _check_shared(found, f"shared {number}", tasks, allowed)
    yield from _check_nothing_else(found, allowed)
    yield from _check_learned(found)
    yield from _check_runs(found, set(_users_with_erasures(tasks)))
    yield from _check_rows(found)


# --- what was acknowledged ---


def _users(tasks: Iterable[Done]) -> Iterator[list[User]]:
    """Of each user what must be stored; where an operation is in doubt, with and without it."""
    for done in tasks:
        users: dict[str, User] = {}
        for operation, content_id in done.acknowledged:
            if operation.do != SHARED:
                apply(users.setdefault(operation.user, User(operation.user)), operation, content_id)
        doubt = done.in_doubt if done.in_doubt and done.in_doubt.do != SHARED else None
        if doubt:
            users.setdefault(doubt.user, User(doubt.user))
        for user in users.values():
            yield [user, *([_with(user, doubt)] if doubt and doubt.user == user.name else [])]


def _with(user: User, doubt: Operation) -> User:
    changed = deepcopy(user)
    apply(changed, doubt, "an id that nobody was told")
    return changed


def _check_user(found: Found, may_be: list[User], allowed: set[str]) -> Iterator[str]:
    """Whether what is stored is one of what may be; what may be found of the user is allowed from then on."""
    stored, written = found.user(may_be[0].name), found.written(may_be[0].name)
    for user in may_be:
        if stored.talks == user.talks and written == {tuple(line.texts) for line in user.lines.values()}:
            allowed |= words_in(user.texts())
            return
    allowed |= words_in(text for user in may_be for text in user.texts())
    yield from _differences(stored, written, may_be[0])


def _differences(stored: User, written: set[tuple[str, ...]], user: User) -> Iterator[str]:
    yield f"{user.name} is stored otherwise than acknowledged"
    for talk in stored.talks.keys() | user.talks.keys():
        if stored.talks.get(talk) != user.talks.get(talk):
            yield f"{talk} of {user.name}: {stored.talks.get(talk)} in place of {user.talks.get(talk)}"
    lines = {tuple(line.texts) for line in user.lines.values()}
    if written != lines:
        yield f"{user.name}: entries {written - lines} in place of {lines - written}"


def _check_shared(found: Found, user: str, tasks: list[Done], allowed: set[str]) -> Iterator[str]:
    """Each batch is there once and whole, in the order of its task; one in doubt may be missing."""
    stored = found.messages.get(shared_talk(user), {})
    ids = [stored[place].message_id for place in sorted(stored)]
    if sorted(stored) != list(range(len(stored))) or len(set(ids)) < len(ids):
        yield f"the conversation of {user} has gaps or doubles"
    places = {message_id: place for place, message_id in enumerate(ids)}
    known: set[str] = set()
    for done in tasks:
        batches = [each for each, _ in done.acknowledged if each.do == SHARED and each.user == user]
        doubt = done.in_doubt
        if doubt and doubt.do == SHARED and doubt.user == user and doubt.said[0].message_id in places:
            batches.append(doubt)
        yield from _check_batches(user, batches, places)
        known |= {said.message_id for batch in batches for said in batch.said}
        allowed |= words_in(said.content for batch in batches for said in batch.said)
    if set(ids) - known:
        yield f"{user} has messages that nobody wrote, or half of a batch: {sorted(set(ids) - known)}"


def _check_batches(user: str, batches: list[Operation], places: dict[str, int]) -> Iterator[str]:
    last = -1
    for batch in batches:
        ids = [said.message_id for said in batch.said]
        first = places.get(ids[0], -1)
        if [places.get(each, -1) for each in ids] != list(range(first, first + len(ids))) or first <= last:
            yield f"a batch of {user} is lost, torn or out of order: {ids}"
        last = first


def _check_nothing_else(found: Found, allowed: set[str]) -> Iterator[str]:
    """Whatever was erased or deleted is in no column of any table, and nothing is there that nobody wrote."""
    for table, rows in found.rows.items():
        texts = (value for row in rows for value in row.values() if isinstance(value, str))
        surplus = words_in(texts) - allowed
        if surplus:
            yield f"{table} has what was erased, deleted, or written by nobody: {sorted(surplus)[:5]}"


# --- what was learned ---


def _check_learned(found: Found) -> Iterator[str]:
    """Each message of a user is applied once, to one entry, which says what it says."""
    texts = {row["content_id"]: row["content_text"] for row in found.rows["memory_contents"]}
    for talk, messages in found.messages.items():
        for said in messages.values():
            learned = found.learned.get((talk, said.message_id), [])
            if len(learned) != int(said.role == "user"):
                yield f"{said.message_id} of {talk} was applied {len(learned)} times"
            elif learned and words_in([texts.get(learned[0], "")]) != words_in([said.content]):
                yield f"{said.message_id} of {talk} was learned as something else"


def _users_with_erasures(tasks: Iterable[Done]) -> Iterator[str]:
    """Those who had something erased, which takes along the answers of models that quote it."""
    for done in tasks:
        operations = [operation for operation, _ in done.acknowledged]
        for operation in [*operations, *([done.in_doubt] if done.in_doubt else [])]:
            if operation.do.startswith(("erase", "delete")):
                yield operation.user


def _check_runs(found: Found, erased: set[str]) -> Iterator[str]:
    """All runs are done, stage by stage, and each message is in one."""
    users = {row["conversation_id"]: row["user_id"] for row in found.rows["conversations"]}
    for talk, runs in found.runs.items():
        for run in runs:
            stages = {row["stage"] for row in found.stages.get(run["run_id"], [])} - {"consolidation"}
            is_whole = stages == _STAGES or (users.get(talk) in erased and stages < _STAGES)
            if (run["status"], run["is_open"], is_whole) != ("done", 0, True):
                yield f"a run over {talk} is {run['status']}, with the stages {sorted(stages)}"
        spans = [(run["first_index"], run["last_index"]) for run in runs]
        if any(before[1] >= after[0] for before, after in pairwise(spans)):
            yield f"the runs over {talk} overlap: {spans}"
    for talk, messages in found.messages.items():
        spans = [(run["first_index"], run["last_index"]) for run in found.runs.get(talk, [])]
        lost = [place for place in messages if not any(first <= place <= last for first, last in spans)]
        if lost:
            yield f"messages {lost} of {talk} are in no run"


# --- what hangs on what ---


def _check_rows(found: Found) -> Iterator[str]:
    for table, column, parent, key in _PARENTS:
        there = {row[key] for row in found.rows[parent]}
        orphans = [row for row in found.rows[table] if row[column] and row[column] not in there]
        if orphans:
            yield f"{len(orphans)} rows of {table} have no {parent} for their {column}"
    if found.rows["memory_queue"]:
        yield f"{len(found.rows['memory_queue'])} memories are queued, with nothing to do"
    waiting = [row for row in found.rows["conversations"] if row["learn_at"] is not None]
    if waiting:
        yield f"{len(waiting)} conversations wait for a quiet that has come"
    yield from _check_index(found)
    yield from _check_vectors(found)


def _check_index(found: Found) -> Iterator[str]:
    """What is told is found by its terms, and nothing else is."""
    told = {
        (row["memory_id"], row["position"])
        for row in found.rows["memory_contents"]
        if row["retired_at"] is None
    }
    indexed = {(row["memory_id"], row["position"]) for row in found.rows["memory_terms"]}
    if indexed - told:
        yield f"{len(indexed - told)} entries are in the index that are not told"
    if told - indexed:
        yield f"{len(told - indexed)} entries are told that are not in the index"


def _check_vectors(found: Found) -> Iterator[str]:
    """What is told has a vector, and all vectors are of one model."""
    told = [row for row in found.rows["memory_contents"] if row["retired_at"] is None]
    rows: list[Row] = [*told, *found.rows["conversation_messages"]]
    models = Counter(row["vector_model"] if row["content_vector"] is not None else "none" for row in rows)
    if len(models) > 1 or "none" in models:
        yield f"vectors are of these models: {dict(models)}"
