"""What must hold of a session that several clients write to at once, whatever order they came in."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from .items import batch, batch_of, place_of, writer_of
from .journal import Ended, Outcome

_ADDING = ("add", "add_once", "transform")


@dataclass
class Written:
    """What was written to a session and taken from it, as those say who did it."""

    added: set[str]
    """Acknowledged."""
    maybe: dict[str, list[str]]
    """Batches of which nobody knows."""
    popped: Counter[str]
    unknown_pops: int


def written_in(calls: Sequence[Ended]) -> Written:
    """The sum of all calls on one session."""
    written = Written(set(), {}, Counter(), 0)
    for ended in calls:
        call, known = ended.call, ended.outcome is Outcome.DONE
        if call.kind in _ADDING and ended.outcome in (Outcome.DONE, Outcome.UNKNOWN):
            codes = batch(call.writer, call.number, call.arguments[-1])
            if known:
                written.added.update(codes)
            else:
                written.maybe[f"{call.writer}.{call.number}"] = codes
        elif call.kind == "pop" and known and ended.value is not None:
            written.popped[unrevised(ended.value)] += 1
        elif call.kind == "pop" and ended.outcome is Outcome.UNKNOWN:
            written.unknown_pops += 1
    return written


def unrevised(code: str) -> str:
    """A code as it was when its item was written."""
    return code.partition("~")[0]


def check_shared(calls: Sequence[Ended], final: Sequence[str]) -> list[str]:
    """What does not hold of a session, in words: of what it holds in the end, and of each reading."""
    written = written_in(calls)
    found = check_kept(written, list(map(unrevised, final)))
    found += check_reading(written, list(map(unrevised, final)), whole=True)
    for ended in calls:
        if ended.call.kind == "get" and ended.outcome is Outcome.DONE:
            whole = ended.call.arguments[0] is None
            wrong = check_reading(written, list(map(unrevised, ended.value)), whole)
            found += [f"{each}, as {ended.call.writer} read in call {ended.call.number}" for each in wrong]
    return found + check_refused(calls) + check_own_writes(calls, written)


def check_refused(calls: Sequence[Ended]) -> list[str]:
    """Whether each call was taken for one that makes sense, as all of them do."""
    refused = [ended.call for ended in calls if ended.outcome is Outcome.REFUSED]
    return [f"call {call.number} of {call.writer}, {call.kind}, was refused" for call in refused]


def check_kept(written: Written, final: Sequence[str]) -> list[str]:
    """Whether everything acknowledged is there or was taken, once, and batches are whole or absent."""
    stored, popped = set(final), set(written.popped)
    seen = stored | popped
    wanted = written.added | {code for codes in written.maybe.values() if seen & set(codes) for code in codes}
    lost = wanted - seen
    found = []
    if len(lost) > written.unknown_pops:
        found.append(
            f"{len(lost)} items are lost, such as {min(lost)}, with {written.unknown_pops} pops unknown"
        )
    if stored & popped:
        found.append(f"{min(stored & popped)} was popped and is there")
    twice = [code for code, times in written.popped.items() if times > 1]
    if twice:
        found.append(f"{min(twice)} was popped twice")
    unwritten = popped - written.added - {code for codes in written.maybe.values() for code in codes}
    if unwritten:
        found.append(f"{min(unwritten)} was popped, and nobody wrote it")
    return found


def check_reading(written: Written, read: Sequence[str], whole: bool) -> list[str]:
    """Whether what was read at one moment can be: nothing unknown or doubled, batches and order kept."""
    known = written.added | {code for codes in written.maybe.values() for code in codes}
    found = [f"nobody wrote {code}" for code in set(read) - known]
    found += [f"{code} is there {times} times" for code, times in Counter(read).items() if times > 1]
    return found or _check_batches(read, whole) + _check_order(read)


def _check_batches(read: Sequence[str], whole: bool) -> list[str]:
    """Items of a batch stand together, from its first on: only its end can have been popped."""
    found = []
    for number, (name, codes) in enumerate(groupby(read, key=batch_of)):
        places = [place_of(code) for code in codes]
        first = places[0] if number == 0 and not whole else 0
        if places != list(range(first, first + len(places))):
            found.append(f"of the batch {name} there are {places} together")
    return found


def _check_order(read: Sequence[str]) -> list[str]:
    last: dict[str, int] = {}
    for code in read:
        writer, call = writer_of(code)
        if call < last.get(writer, 0):
            return [f"{code} stands after what its writer wrote later"]
        last[writer] = call
    return []


def check_own_writes(calls: Sequence[Ended], written: Written) -> list[str]:
    """Whether each writer finds what was acknowledged to it before, unless somebody popped it."""
    found = []
    own: dict[str, set[str]] = {}
    for ended in calls:
        call = ended.call
        if ended.outcome is not Outcome.DONE:
            continue
        if call.kind in _ADDING:
            own.setdefault(call.writer, set()).update(batch(call.writer, call.number, call.arguments[-1]))
        elif (seen := _seen_whole(ended)) is not None:
            missing = own.get(call.writer, set()) - seen - set(written.popped)
            if len(missing) > written.unknown_pops:
                found.append(
                    f"{call.writer} did not find its own {min(missing)} in call {call.number}, {call.kind}"
                )
    return found


def _seen_whole(ended: Ended) -> set[str] | None:
    """All that a session held at a call, where it tells that; a pop of nothing tells that it is empty."""
    if ended.call.kind == "get" and ended.call.arguments[0] is None:
        return set(map(unrevised, ended.value))
    return set() if ended.call.kind == "pop" and ended.value is None else None
