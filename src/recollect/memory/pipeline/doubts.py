"""Decides which entries become doubtful because what they rest on has changed: pure functions over values.

An entry rests on another one if it was inferred from it, if it is a part of a plan that is cancelled or moved
(the hotel of a trip), or if an extractor says so. It is repeated with less confidence, and the copy rests on
the message about the change as well. So nothing is deleted, and erasing that message undoes the doubt.
"""

import calendar
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta

from ..entry import Entry
from ..lifetime import DOUBTFUL_BELOW
from ..texts.similarity import mean_the_same, meaning_of, says_more
from ..texts.terms import terms
from .inferences import GROUNDS
from .stages import Candidate, Decision

DOUBT = "doubt"
"""The key in an entry's data for the reason of a doubt."""
RESTS_ON = "rests_on"
"""The key in an entry's data for the id of the entry that has changed."""
_REASON = "what it rests on has changed"
_CONFIDENCE = 0.3
_BEFORE, _AFTER = timedelta(days=3), timedelta(days=30)  # of the things that belong to a trip
_CANCELLED = re.compile(
    r"\b(?:cancel|call(?:s|ed)? off|is off\b|no longer|f[ae]lls? through|postpone|not (?:going|fly))"
    r"|取消|没去成|不去了|推迟|改期|泡汤",
    re.IGNORECASE,
)
_TRIP = re.compile(
    r"\b(?:fl(?:y|ies|ying|ight)|trip|travel|holiday|vacation|journey|cruise|tour|visits?|goes to|going to)\b"
    r"|[去飞]|旅行|旅游|之行|出差",
    re.IGNORECASE,
)
_PART_OF_TRIP = re.compile(
    r"\b(?:hotel|hostel|apartment|cabin|airbnb|room|book(?:s|ed|ing)|reserv\w+|(?:annual|on) leave|leave from"
    r"|(?:time|days?|weeks?) off|holiday|vacation|sitters?|sits|sitting|kennel|cattery|looks? after|feeds?"
    r"|takes? care|flight|train|ferry|visa|(?:rental|hire) car|insurance|tickets?|transfer|tour)\b"
    r"|酒店|旅馆|民宿|宾馆|请假|年假|休假|签证|机票|车票|火车票|门票|寄养|照顾|预订|订了",
    re.IGNORECASE,
)
_AWAY = re.compile(
    r"\b(?:while .{1,30} (?:away|gone)|(?:during|for) (?:the|their) (?:trip|journey|holiday|vacation))\b"
    r"|不在家|旅行期间|出门期间",
    re.IGNORECASE,
)
_OCCASIONS = (
    "wedding party conference concert festival marathon race course exam congress fair 婚礼 会议 比赛"
)
_NAMED = re.compile(r"(?<=[\w,;] )[A-Z][^\W\d_]{2,}|[\u3400-\u9fff]+")
_COMMON = {day.casefold() for day in (*calendar.day_name, *calendar.month_name)} | {"user"}
_COMMON_CHARACTERS = frozenset("用户计划年月日号去到在了的取消订飞和与跟要将会约天周旅行")


def doubts_after(
    candidates: Sequence[Candidate],
    decisions: Iterable[Decision],
    known: Sequence[Entry],
    said_at: Mapping[str, datetime],
    *,
    by_plan: bool = True,
) -> list[Candidate]:
    """A doubtful copy of each known entry that rests on what the decisions change.

    What the same messages replace or confirm stays as they say, and so does what a person wrote.
    `by_plan` is for an extractor that does not find the parts of a plan by itself.
    """
    by_id = {entry.content_id: entry for entry in known}
    decided = list(decisions)
    spared = {target for decision in decided for target in decision.targets}
    spared |= {each for candidate in candidates for each in (candidate.confirms, *candidate.replaces)}
    open_to_doubt = [each for each in known if each.content_id not in spared and _can_be_doubted(each)]
    found: dict[str, Candidate] = {}
    for candidate, changed in _changes(candidates, decided, by_id):
        time = max((said_at[each] for each in candidate.evidence if each in said_at), default=None)
        for entry in open_to_doubt:
            is_newer = time is not None and entry.said_at is not None and entry.said_at > time
            if not is_newer and _rests_on(entry, candidate, changed, time, by_plan):
                found.setdefault(entry.content_id, _doubtful(entry, candidate, changed))
    return list(found.values())


def _changes(
    candidates: Sequence[Candidate], decisions: Iterable[Decision], known: Mapping[str, Entry]
) -> list[tuple[Candidate, Entry | None]]:
    """The candidates that change something, each with a known entry that it supersedes, if any."""
    pairs: list[tuple[Candidate, Entry | None]] = [(each, None) for each in candidates if each.shakes]
    for decision in decisions:
        candidate = candidates[decision.candidate]
        if decision.action == "supersede" and not candidate.doubts:
            pairs += [(candidate, known[each]) for each in decision.targets if each in known]
            known = {each: entry for each, entry in known.items() if each not in decision.targets}
    return sorted(pairs, key=lambda pair: pair[1] is None)


def _can_be_doubted(entry: Entry) -> bool:
    is_learned = entry.said_at is not None and not entry.is_edited
    return is_learned and entry.retired_at is None and entry.confidence >= DOUBTFUL_BELOW


def _rests_on(
    entry: Entry, candidate: Candidate, changed: Entry | None, said_at: datetime | None, by_plan: bool
) -> bool:
    if entry.content_id in candidate.shakes:
        return True
    if changed is None:
        return False
    grounds = entry.data.get(GROUNDS)
    if isinstance(grounds, Collection):
        return changed.content_id in grounds and not _says_it_still(candidate, changed)
    is_plan = by_plan and changed.content_type == "event" and changed.valid_from is not None
    return is_plan and _is_off(candidate, changed) and _is_part_of(entry, changed, said_at)


def _says_it_still(candidate: Candidate, changed: Entry) -> bool:
    """Whether a new wording says what the old one did, and perhaps more."""
    if candidate.data.get("ended"):
        return False
    new, old = meaning_of(candidate.text), meaning_of(changed.text)
    return mean_the_same(new, old) or says_more(new, old)


def _is_off(candidate: Candidate, plan: Entry) -> bool:
    """Whether a plan is cancelled, or moved to another time."""
    is_cancelled = bool(candidate.data.get("ended")) or _CANCELLED.search(candidate.text) is not None
    return is_cancelled or (candidate.valid_from is not None and candidate.valid_from != plan.valid_from)


def _is_part_of(entry: Entry, plan: Entry, said_at: datetime | None) -> bool:
    """Whether an entry belongs to a plan: by its name, or by its time and what it is."""
    is_named, is_trip = bool(_names_in(entry.text) & _names_in(plan.text)), _TRIP.search(plan.text)
    if entry.valid_from is None:
        is_thing = entry.content_type == "event" or _PART_OF_TRIP.search(entry.text)
        return bool((is_named and is_thing) or (is_trip and _AWAY.search(entry.text)))
    is_meanwhile = _is_meanwhile(entry, plan)
    is_ahead = said_at is None or entry.valid_from >= said_at.date().isoformat()[: len(entry.valid_from)]
    if is_named:
        return is_meanwhile or (is_ahead and entry.content_type == "event")
    return bool(is_meanwhile and is_trip and _PART_OF_TRIP.search(entry.text))


def _is_meanwhile(entry: Entry, plan: Entry) -> bool:
    """Whether an entry begins in the days of a plan, or ends in them."""
    first, last = _first_day(plan.valid_from), _first_day(plan.valid_to or plan.valid_from)
    if first is None or last is None:
        return False
    days = [_first_day(entry.valid_from), _first_day(entry.valid_to)]
    return any(first - _BEFORE <= day <= max(last, first + _AFTER) for day in days if day)


def _first_day(value: str | None) -> date | None:
    """The first day of a day, a month or a year; `None` without one."""
    parts = [int(part) for part in (value or "").split("-") if part.isdigit()]
    return date(*[*parts, 1, 1][:3]) if parts else None


def _names_in(text: str) -> frozenset[str]:
    """The names and the occasions in a text, by which its parts call a plan."""
    names = {name.casefold() for name in _NAMED.findall(text) if name.isascii()} - _COMMON
    chinese = [term for run in _NAMED.findall(text) if not run.isascii() for term in terms(run)]
    names |= {term for term in chinese if len(term) > 1 and not _COMMON_CHARACTERS & set(term)}
    return frozenset(names | (set(terms(text)) & set(terms(_OCCASIONS))))


def _doubtful(entry: Entry, candidate: Candidate, changed: Entry | None) -> Candidate:
    """The same entry with less confidence. It takes the place of the certain one."""
    why = {DOUBT: _REASON, **({RESTS_ON: changed.content_id} if changed else {})}
    return Candidate(
        entry.content_type,
        entry.text,
        candidate.evidence,
        _CONFIDENCE,
        entry.valid_from,
        entry.valid_to,
        entry.slot,
        {**entry.data, **why},
        replaces=(entry.content_id,),
        expires_at=entry.expires_at.isoformat() if entry.expires_at else None,
        doubts=entry.content_id,
        is_trusted=True,
    )
