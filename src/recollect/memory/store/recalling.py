"""Chooses what a search shows and what goes into a prompt: pure functions over the hits of searches.

`build_block` is the only place that decides what an agent is given. The library, the integrations, the chat
of the service, the proxy, the MCP server and the command line show the lines of its block.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar, get_args

from ...items import Tokenizer, estimate_text_tokens
from ..block import Block, Line, MessageKey, Reason
from ..conversation import Message, Role
from ..entry import Entry
from ..hits import MemoryHit, MemorySearch, TurnHit, TurnSearch
from ..lifetime import state_of
from ..search.filters import check_chance
from ..search.lookup import SearchResult
from ..search.phrasing import asks_all, asks_past, asks_several
from ..texts.any_case import AnyCase
from ..texts.endings import corrects, ends, says_end
from ..texts.similarity import gist_of
from ..texts.synonyms import LIGHT
from ..texts.terms import terms
from ..texts.values import group_by_thing
from ..times import format_date, start_of

_Hit = TypeVar("_Hit", MemoryHit, TurnHit)

_WEIGHT_OF_LEARNED = 0.6  # of what entries say of the chance that there is anything to say
_LEAST_CHANCE = 0.004  # that a hit is relevant; below it, more lines would only distract
_LEAST_SHARE = 0.1  # of the best chance, if even that is low: a caller may ask for what is nearest anyway
_SHARE_OF_LINE = 12  # a quote takes at most this part of the budget
_SHORTEST_QUOTE = 40  # tokens to which a quote is not shortened further, however small the budget is
_AS_MUCH = 0.6  # of the terms of a message that its fact must have to say as much
_FEWEST_TERMS = 3  # of a message without a number that is worth a line
_ENOUGH = 200  # characters of a message that are read for them
_MOST_BETWEEN = 3  # positions from a message to the correction of it
_VALUE = re.compile(r"\b[A-Z]\w*|\d+")
_ASIDE = re.compile(r"\([^)]*\)|（[^）]*）")
_SAID = "Said:"
_MOST_WISHES = 3  # that are in a block whatever the question is
_LEAST_CHANCE_OF_WISH = 0.1  # of a wish that is not in every block
_CONDITION = AnyCase(
    r"\b(?:when|whenever|if|unless|wenn|falls|quand|si|cuando|se|quando)\b", "当|當|如果|时候|時候|если|когда"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?]+(?=\s|$)|[。！？]+|\n+|[.!?])?")


@dataclass(frozen=True)
class Cut:
    """The least chances of a hit and of a whole search."""

    score: float = 0.0
    relevance: float = 0.0

    @classmethod
    def of(cls, min_score: object, min_relevance: object) -> "Cut":
        """Check the numbers of a caller. `None` cuts nothing."""
        return cls(check_chance("min_score", min_score), check_chance("min_relevance", min_relevance))

    def apply(self, found: SearchResult) -> SearchResult:
        """The result without the hits below the cut."""
        if found.relevance < self.relevance:
            return replace(found, hits=())
        return replace(found, hits=tuple(hit for hit in found.hits if hit.score >= self.score))


def relevance_of(known: MemorySearch, said: TurnSearch) -> float:
    """The chance that entries and messages together have anything to say about a question.

    The messages count more: everything that was learned is among them. An entry that was written by hand is
    in no message, so messages that do not mention it do not count against it.
    """
    is_learned = bool(said.hits and known.hits and known.hits[0].entry.evidence)
    return max(said.relevance, (_WEIGHT_OF_LEARNED if is_learned else 1.0) * known.relevance)


@dataclass(frozen=True)
class Found:
    """What searches found for a question: the hits of entries and of messages, best first."""

    entries: Sequence[MemoryHit] = ()
    turns: Sequence[TurnHit] = ()
    wishes: Sequence[Entry] = ()
    """The standing instructions of the user, the newest first."""
    outdated: Collection[MessageKey] = ()
    """The messages whose entries were superseded."""


def build_block(
    query: str, found: Found, *, now: datetime, budget: int, tokenizer: Tokenizer | None = None
) -> Block:
    """The lines for a prompt of at most `budget` tokens, best first.

    Nothing is said twice: a message that a shown entry was learned from is left out. Of lines that say
    something else of the same thing, the newest leads. If the question is about the past, the older ones
    follow, marked as earlier, and otherwise they are left out.
    """
    is_past = asks_past(query)
    size = max(_SHORTEST_QUOTE, budget // _SHARE_OF_LINE)
    quoting = _Quoting(query, size, tokenizer or estimate_text_tokens)
    outdated = _outdated_in(found)
    left_out = frozenset() if is_past else outdated
    chances = [hit.score for hit in found.entries]
    chances += [hit.score for hit in found.turns if _key_of(hit) not in left_out]
    least = min(_LEAST_CHANCE, _LEAST_SHARE * max(chances, default=0.0))
    facts = _fact_lines(found.entries, now, 0.0 if asks_all(query) else least)
    quotes = [
        quoting.line(hit, is_earlier=_key_of(hit) in outdated)
        for hit in found.turns
        if hit.score >= least and _key_of(hit) not in left_out and _says_something(hit.message)
    ]
    lines, words = _each_once(facts, quotes)
    lines.sort(key=lambda line: (line.reason == "doubtful", -line.score))
    lines = newest_first(lines, query, keep_older=is_past)
    lines = with_latest_word(lines, found.turns, query, keep_ended=is_past)
    lines = [_with_words(line, words, keep_fact=is_past) for line in lines]
    wishes = _wish_lines(found)
    block = Block((*wishes, *lines), now)
    shown = block.render(budget=budget, tokenizer=tokenizer).shown
    kept = [line for place, line in enumerate(lines) if place in shown.memories]
    if asks_several(query):
        happened = {hit.entry.content_id: _time_of(hit.entry) for hit in found.entries}
        kept.sort(key=lambda line: (happened.get(line.id, line.time), line.position))
    kept_wishes = [line for place, line in enumerate(wishes) if place in shown.wishes]
    return replace(block, lines=(*kept_wishes, *kept))


def _each_once(facts: Sequence[Line], quotes: Sequence[Line]) -> tuple[list[Line], dict[MessageKey, Line]]:
    """The lines without what another one says, and the quotes that go with a fact, by their message.

    A fact tells a message better, takes the score of it, and is followed by its words if they say more. A
    doubtful fact gives way to the messages that stated it and put it in doubt.
    """
    quoted = {line.messages[0]: line for line in quotes}
    kept: list[Line] = []
    words: dict[MessageKey, Line] = {}
    for fact in facts:
        its = [quoted[key] for key in fact.messages if key in quoted]
        if fact.reason == "doubtful" and fact.messages and quoted.keys() >= set(fact.messages):
            continue
        its += [words[key] for key in fact.messages if key in words]
        kept.append(replace(fact, score=max([fact.score, *(quote.score for quote in its)])))
        words |= {quote.messages[0]: quote for quote in its}
    each: dict[str, Line] = {}
    for line in (line for key, line in quoted.items() if key not in words):  # the best first
        each.setdefault(_core(line), line)
    return [*kept, *each.values()], words


def _with_words(line: Line, words: dict[MessageKey, Line], *, keep_fact: bool) -> Line:
    """The words of the last message of a fact if they say more, or both: only the fact has a date worked out.

    Nothing is quoted twice.
    """
    quote = words.pop(line.messages[-1], None) if line.kind == "fact" and line.messages else None
    if quote is None or _tells(line, quote):
        return line
    if not keep_fact:
        return replace(quote, score=line.score)
    return replace(line, text=f"{line.text} {_SAID} {_core(quote)}")


def _tells(fact: Line, quote: Line) -> bool:
    """Whether a fact says as much as the words that it was learned from, or another value than they do."""
    told, said = _core(fact), frozenset(terms(_core(quote))) - LIGHT
    if not said.issuperset(terms(" ".join(_VALUE.findall(_ASIDE.sub("", told))[1:]))):
        return True  # what was said first was corrected
    return len(said.intersection(terms(told))) >= _AS_MUCH * len(said)


# --- facts ---


def _fact_lines(hits: Sequence[MemoryHit], now: datetime, least: float) -> list[Line]:
    """The lines of entries, without those about a subject of which a newer one is among them."""
    newest: dict[tuple[str, str], Entry] = {}
    for entry in (hit.entry for hit in hits if hit.entry.retired_at is None):
        key = (entry.memory_id, entry.slot or entry.content_id)
        if key not in newest or entry.learned_at > newest[key].learned_at:
            newest[key] = entry
    current = {entry.content_id for entry in newest.values()}
    return [
        _fact_line(hit, now)
        for hit in hits
        if hit.entry.content_type != "instruction"
        and (hit.entry.retired_at is not None or hit.entry.content_id in current)
        and hit.score >= least
    ]


def _fact_line(hit: MemoryHit, now: datetime) -> Line:
    entry = hit.entry
    reason: Reason = "relevant"
    if entry.retired_at is not None:
        reason = "earlier"
    elif state_of(entry, now) == "doubtful":
        reason = "doubtful"
    text = f"{format_date(_said(entry))}: {gist_of(entry.text)}{_period(entry)}"
    text += " (may no longer hold)" if reason == "doubtful" else ""
    line = Line("fact", entry.content_id, text, _said(entry), hit.score, reason, None, _evidence_of(entry))
    return _mark_earlier(line) if reason == "earlier" else line


def _period(entry: Entry) -> str:
    """Since when and until when an entry holds, as far as that is known."""
    until = entry.valid_to or (entry.retired_at.date().isoformat() if entry.retired_at else None)
    if entry.content_type == "event":
        return f" ({entry.valid_from})" if entry.valid_from and entry.valid_from not in entry.text else ""
    parts = [f"since {entry.valid_from}"] if entry.valid_from else []
    parts += [f"until {until}"] if until else []
    return f" ({', '.join(parts)})" if parts else ""


def _said(entry: Entry) -> datetime:
    return entry.said_at or entry.learned_at


def _time_of(entry: Entry) -> datetime:
    return start_of(entry.valid_from) if entry.valid_from else _said(entry)


def _evidence_of(entry: Entry) -> tuple[MessageKey, ...]:
    return tuple(dict.fromkeys((each.conversation_id, each.message_id) for each in entry.evidence))


# --- quotes ---


def _key_of(hit: TurnHit) -> MessageKey:
    return hit.conversation_id, hit.message.message_id


def _outdated_in(found: Found) -> frozenset[MessageKey]:
    """The messages that no longer hold: those whose entries were superseded, and the replies to them."""
    places = {
        (hit.conversation_id, hit.message.message_index)
        for hit in found.turns
        if _key_of(hit) in found.outdated
    }
    replies = {
        _key_of(hit)
        for hit in found.turns
        if hit.message.role == "assistant" and (hit.conversation_id, hit.message.message_index - 1) in places
    }
    return frozenset((*found.outdated, *replies))


@dataclass(frozen=True)
class _Quoting:
    """Quotes messages. A long one gives the sentences that are nearest to the question."""

    query: str
    size: int
    count: Tokenizer

    def line(self, hit: TurnHit, *, is_earlier: bool) -> Line:
        message = hit.message
        text = f"{format_date(message.created_at)}, {message.speaker}: {self._quote(hit)}"
        line = Line(
            "quote",
            message.message_id,
            text,
            message.created_at,
            hit.score,
            "relevant",
            hit.conversation_id,
            (_key_of(hit),),
            message.message_index,
        )
        return _mark_earlier(line) if is_earlier else line

    def _quote(self, hit: TurnHit) -> str:
        passage = shorten(hit.passage or hit.message.content, self.query, self.size, self.count)
        before = "" if hit.message.content.startswith(passage) else "… "
        after = "" if hit.message.content.endswith(passage) else " …"
        return f'"{before}{passage}{after}"'


def _says_something(message: Message) -> bool:
    """Whether a message is more than "OK" or "Nice!"."""
    start = message.content[:_ENOUGH]
    return len(terms(start)) >= _FEWEST_TERMS or any(map(str.isdigit, start))


def quoted_passage(hit: TurnHit, line: Line) -> str:
    """The part of a message that a line quotes."""
    quote = line.text.partition(': "')[2].partition('" Then corrected: "')[0].removesuffix('"')
    return quote.removeprefix("… ").removesuffix(" …") if quote not in hit.message.content else quote


def shorten(text: str, query: str, size: int, count: Tokenizer = estimate_text_tokens) -> str:
    """A text of at most about `size` tokens: the sentences around the one that is nearest to a question."""
    if count(text) <= size:
        return text
    sentences = [match.span() for match in _SENTENCE.finditer(text) if match.group().strip()]
    wanted = frozenset(terms(query))
    shared = [len(wanted.intersection(terms(text[start:end]))) for start, end in sentences]
    first = last = max(range(len(sentences)), key=shared.__getitem__)
    while True:
        start, end = sentences[first][0], sentences[last][1]
        if last + 1 < len(sentences) and count(text[start : sentences[last + 1][1]]) <= size:
            last += 1
        elif first > 0 and count(text[sentences[first - 1][0] : end]) <= size:
            first -= 1
        else:
            break
    return _cut(text[start:end].strip(), size, count)


def _cut(sentence: str, size: int, count: Tokenizer) -> str:
    """The start of a sentence that is too long by itself."""
    low, high = 0, len(sentence)
    if count(sentence) <= size:
        return sentence
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(sentence[:middle]) <= size else (low, middle - 1)
    return sentence[:low].rstrip()


# --- the newest first ---


def newest_first(lines: Sequence[Line], query: str, *, keep_older: bool) -> list[Line]:
    """Lines of which the newest leads among those that say something else of the same thing.

    The older ones follow it if they are kept, marked as earlier. The others stay where they are.
    """
    # What is marked as earlier already contradicts nothing: each of these lines is a text of its own.
    texts = [f"{place}" if line.reason == "earlier" else _core(line) for place, line in enumerate(lines)]
    ordered: list[Line] = []
    groups = group_by_thing(texts, _asked_terms(query))
    for group in (each for places in groups for each in _by_name([lines[place] for place in places])):
        newest, *older = sorted(group, key=lambda line: (line.time, line.position), reverse=True)
        ordered.append(replace(newest, score=max(line.score for line in group)))
        ordered += [_mark_earlier(line) for line in older if keep_older]
    return ordered


def _by_name(group: Sequence[Line]) -> list[list[Line]]:
    """A group of lines, apart for each person if several people speak: "my boat" is another one for each."""
    names = [_name_of(line) for line in group]
    if len({*names} - {None}) < 2:
        return [list(group)]
    return [
        [line for line, other in zip(group, names, strict=True) if other == name]
        for name in dict.fromkeys(names)
    ]


def _name_of(line: Line) -> str | None:
    """The name of the speaker whom a line quotes; `None` for a fact, and for a speaker without a name."""
    speaker = line.text.partition(": ")[0].rpartition(", ")[2]
    return speaker if line.kind == "quote" and speaker not in get_args(Role) else None


def with_latest_word(
    lines: Sequence[Line], said: Sequence[TurnHit], query: str, *, keep_ended: bool
) -> list[Line]:
    """Lines of which none stands alone that a later message takes back, corrects or ends.

    A message that was corrected at once is followed by its correction. What a later line ends is left out,
    or marked as earlier if it is kept.
    """
    asked = _asked_terms(query)
    ending = [line for line in lines if line.reason != "doubtful" and says_end(_core(line))]
    ended = {
        line.id
        for later in ending
        for line in lines
        if later.time > line.time
        and line.reason != "earlier"
        and _speaker(later) == _speaker(line)
        and ends(_core(later), _core(line), asked)
    }
    kept = [line for line in lines if keep_ended or line.id not in ended]
    corrections = _corrections(said)
    told = [_with_correction(_mark_earlier(line) if line.id in ended else line, corrections) for line in kept]
    shown = {key for line in told for key in line.messages[1:] if line.kind == "quote"}
    return [line for line in told if line.kind != "quote" or line.messages[0] not in shown]


def _speaker(line: Line) -> str:
    """Who said a line: facts are about the user."""
    return "user" if line.kind == "fact" else line.text.partition(": ")[0].rpartition(", ")[2]


def _corrections(said: Sequence[TurnHit]) -> dict[MessageKey, TurnHit]:
    """The corrections among messages, by the message of the same speaker just before each."""
    found: dict[MessageKey, TurnHit] = {}
    for hit in said:
        if not corrects(hit.message.content):
            continue
        before = [
            other
            for other in said
            if other.conversation_id == hit.conversation_id
            and other.message.speaker == hit.message.speaker
            and 0 < hit.message.message_index - other.message.message_index <= _MOST_BETWEEN
        ]
        if before:
            found[_key_of(max(before, key=lambda other: other.message.message_index))] = hit
    return found


def _with_correction(line: Line, corrections: Mapping[MessageKey, TurnHit]) -> Line:
    """A line with the correction of its only message, if there is one."""
    correction = corrections.get(line.messages[0]) if len(line.messages) == 1 else None
    if correction is None:
        return line
    text = f'{line.text} Then corrected: "{correction.message.content}"'
    return replace(line, text=text, messages=(*line.messages, _key_of(correction)))


def newest_hits_first(hits: Sequence[_Hit], query: str) -> tuple[_Hit, ...]:
    """Hits of which the newest leads among those that say something else of the same thing.

    It takes the place and the score of the best of them, and the others follow it. If the question is about
    the past, the hits stay in their order.
    """
    if asks_past(query):
        return tuple(hits)
    ordered = list(hits)
    for places in group_by_thing([_text_of(hit) for hit in hits], _asked_terms(query)):
        group = sorted((hits[place] for place in places), key=_order_of, reverse=True)
        for place, hit in zip(places, group, strict=True):
            ordered[place] = _with_score(hit, hits[place].score)
    return tuple(ordered)


def _with_score(hit: _Hit, score: float) -> _Hit:
    """A hit with another score, and parts that still add up to it."""
    if hit.score == score:
        return hit
    share = score / hit.score if hit.score else 0.0
    return replace(hit, score=score, parts={name: share * part for name, part in hit.parts.items()})


def _text_of(hit: MemoryHit | TurnHit) -> str:
    return gist_of(hit.entry.text) if isinstance(hit, MemoryHit) else hit.message.content


def _order_of(hit: MemoryHit | TurnHit) -> tuple[datetime, int]:
    if isinstance(hit, MemoryHit):
        return _said(hit.entry), 0
    return hit.message.created_at, hit.message.message_index


def _asked_terms(query: str) -> frozenset[str]:
    return frozenset(terms(query)) - LIGHT


def _core(line: Line) -> str:
    """What a line says, without its date and speaker."""
    return line.text.partition(": ")[2]


def _mark_earlier(line: Line) -> Line:
    return replace(line, text=f"earlier, on {line.text}", reason="earlier")


# --- wishes ---


def _wish_lines(found: Found) -> list[Line]:
    """The newest wishes, and of the others and of those under a condition the ones that fit the question."""
    scores = {hit.entry.content_id: hit.score for hit in found.entries}
    always = [entry.content_id for entry in found.wishes if not _CONDITION.search(entry.text)][:_MOST_WISHES]
    return [
        Line(
            "wish",
            entry.content_id,
            entry.text,
            _said(entry),
            scores.get(entry.content_id, 0.0),
            "standing",
            None,
            _evidence_of(entry),
        )
        for entry in found.wishes
        if entry.content_id in always or scores.get(entry.content_id, 0.0) >= _LEAST_CHANCE_OF_WISH
    ]
