"""The stages of the pipeline by rules, in English and Chinese: no model, and always the same result."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from ..conversation import Message
from ..entry import Entry
from ..pipeline.stages import Answer, Candidate, Excerpt, Mind, Modification, Update
from .language import is_certainly_covered, is_covered
from .own_words import own_words
from .register import Register
from .rules import patterns_of
from .sentences import split_sentences, without_speech
from .setting import Setting
from .statements import Sentence, Statement, plain, read_text
from .work import PROJECT_AGENT, work_in

_AT_ONCE = 20  # messages, before other tasks of the event loop get their turn
_LONG = 2000  # characters of a message; a shorter one is read at once
_BEFORE = 4  # earlier messages whose statements may be corrected now
_MOST_SUMMARIZED = 50  # candidates in the summary of a stage
_MOST_RECENT = 4  # statements that a correction may mean
_SPELLED = re.compile(r"\bspel|\bwith an? \w", re.IGNORECASE)
_WEAK = re.compile(r"(?:ok|hm+|ah|oh|argh|damn|wait|hang on)$", re.IGNORECASE)  # do not correct by themselves
_ONLY = re.compile(r"^(?:just|only) ", re.IGNORECASE)
_QUESTION = re.compile(r"[^.!?？。]*[?？]\s*$")
_ANSWERS = (
    (re.compile(r"\bwhere (?:do|are) you (?:live|living|based)\b", re.IGNORECASE), "I live in {}."),
    (re.compile(r"\b(?:what's|what is) your (?:full )?name\b", re.IGNORECASE), "My name is {}."),
    (re.compile(r"\bhow old are you\b", re.IGNORECASE), "I am {}."),
    (re.compile(r"\bwhere do you work\b", re.IGNORECASE), "I work at {}."),
    (re.compile(r"\bwhat are you allergic to\b", re.IGNORECASE), "I'm allergic to {}."),
    (re.compile("[你您](?:现在)?住在?(?:哪|什么地方)"), "我住在{}。"),
    (re.compile("[你您](?:叫什么|的名字)"), "我叫{}。"),
    (re.compile("[你您](?:今年)?(?:多大|几岁)"), "我今年{}。"),
)


class OfflineExtractor:
    """Reads what the user states flatly, and keeps one value for each attribute."""

    model = "offline"
    asks_no_model = True
    reads_known = True

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        """What the messages change. The candidates say which entries they replace."""
        reading = _Reading(excerpt)
        await reading.read()
        found = [*reading.register.candidates()]
        if excerpt.agent_id.startswith(PROJECT_AGENT):
            texts = {each.text for each in found}
            own = [each for each in excerpt.messages if excerpt.is_users(each)]
            found += [each for message in own for each in work_in(message) if each.text not in texts]
        minds = [each for each in found if each.content_type == "mind"]
        facts = [each for each in found if each.content_type != "mind"]
        mind = Mind(_summarize(minds), _confidence(minds), tuple(minds))
        text = _summarize(facts) or "Nothing new."
        return Answer(
            Modification(text, tuple(facts), mind),
            data={name: count for name, count in reading.left_out.items() if count},
        )

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002
        candidates: Sequence[Candidate],  # noqa: ARG002
        known: Sequence[Entry],  # noqa: ARG002
    ) -> Answer[Update]:
        """No decision of its own: the candidates say already what they replace and confirm."""
        return Answer(Update(()))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:
        """What the user says flatly that they like, fear and want. The first stage answers for it, too."""
        answer = await self.modification(replace(excerpt, known=tuple(known)))
        return Answer(answer.value.mind or Mind("", None, ()), data=answer.data)

    async def aclose(self) -> None:
        """Nothing is held."""


class _Reading:
    """Reads the messages of an excerpt into a register."""

    def __init__(self, excerpt: Excerpt) -> None:
        self.register = Register(excerpt.known)
        self.left_out: Counter[str] = Counter()
        self._excerpt = excerpt
        self._setting = Setting()
        self._earlier: list[Statement] = []
        self._is_understood = True
        """Whether the sentence before was: else it may be the one that is corrected."""

    async def read(self) -> None:
        excerpt = self._excerpt
        own = [each for each in excerpt.before if excerpt.is_users(each)]
        for message in own:
            self._setting.hear(plain(message.content))
        for message in own[-_BEFORE:]:
            self._earlier += self._statements(message)
        before = excerpt.before[-1] if excerpt.before else None
        for number, message in enumerate(excerpt.messages):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if excerpt.is_users(message):
                # A long message is read in a thread, so that it does not block the loop.
                if len(message.content) > _LONG:
                    await asyncio.to_thread(self._read, message, before)
                else:
                    self._read(message, before)
            before = message

    def _statements(self, message: Message) -> list[Statement]:
        sentences = read_text(_heard(message), message.created_at.date(), self.register.find)
        return [each for sentence in sentences for each in sentence.statements]

    def _read(self, message: Message, before: Message | None) -> None:
        text = _heard(message)
        text = self._readable(text, message.content)
        if not text:
            return
        if self._setting.hear(text):
            return
        said_on = message.created_at.date()
        answer = _as_answer(text, before)
        sentences = read_text(answer or text, said_on, self.register.find)
        for sentence in sentences:
            self._apply(sentence, message.message_id, said_on)

    def _readable(self, text: str, content: str) -> str:
        """What there is to read of a message; what cannot be read is counted."""
        if not text.strip():
            if content.strip():
                self.left_out["messages_only_code"] += 1
            return ""
        if not is_covered(text):
            covered = [each for each in split_sentences(text).read if is_certainly_covered(each)]
            self.left_out["messages_in_other_languages"] += not covered
            return "\n".join(covered)
        if len(text) > _LONG:
            left_out = split_sentences(text).left_out
            if left_out:
                self.left_out["sentences_left_out"] += left_out
        return text

    def _apply(self, sentence: Sentence, message_id: str, said_on: date) -> None:
        if self._correct(sentence, message_id, said_on):
            return
        self._is_understood = bool(sentence.statements)
        understood = {each.attribute for each in sentence.statements if self.register.apply(each, message_id)}
        if sentence.is_stated:
            self.register.doubt_changed(sentence, understood, message_id)
            if not understood:
                self.register.doubt_mentioned(sentence, message_id)

    def _correct(self, sentence: Sentence, message_id: str, said_on: date) -> bool:
        """Apply a correction of the statement before; `False` if the sentence is none."""
        recent = [*self.register.recent(), *reversed(self._earlier)][:_MOST_RECENT]
        if not recent:
            return False
        patterns = patterns_of(sentence.language)
        text, is_marked = sentence.text, False
        place = 0
        while marker := patterns.marker.match(text, place):
            place, is_marked = _skip(text, marker.end()), is_marked or not _WEAK.match(marker.group())
        if sentence.statements and not is_marked:
            return False
        for pattern in patterns.corrections:
            match = pattern.match(text, place) or (pattern.match(text) if place else None)
            old = match and match.groupdict().get("old")
            if match is None or not (is_marked or old or _SPELLED.search(match.group())):
                continue
            if match.start("v") < place:  # the marker itself, as in "Hm.", is no value
                continue
            if not (self._is_understood or old or re.search(r"\d", match["v"])):
                continue
            for statement in recent:
                right = self._corrected(statement, _ONLY.sub("", match["v"].strip()), old, said_on)
                if right and self.register.correct(right, statement, message_id):
                    return True
        if patterns.taken_back.match(text) and not sentence.statements and self._is_understood:
            self.register.doubt_last(message_id)
        return False

    def _corrected(self, wrong: Statement, value: str, old: str | None, said_on: date) -> Statement | None:
        """The statement with another value, if the sentence that stated it can be read with that."""
        for start, end in (wrong.span, wrong.moment_span):
            was = wrong.sentence[start:end]
            if not was or (old and not _is_part(old, was)):
                continue
            text = wrong.sentence[:start] + _as_before(value, was) + wrong.sentence[end:]
            for sentence in read_text(text, said_on, self.register.find):
                for each in sentence.statements:
                    is_other = each.value != wrong.value or each.moment != wrong.moment
                    if each.attribute == wrong.attribute and is_other and each.operation == wrong.operation:
                        return each
        return None


def _heard(message: Message) -> str:
    return without_speech(plain(own_words(message.content)))


def _skip(text: str, place: int) -> int:
    match = re.compile(r"[\s,.!:…–—-]*(?:that's|it's wrong|wait)?[\s,.!:…–—-]*").match(text, place)
    return match.end() if match else place


def _is_part(old: str, was: str) -> bool:
    """Whether the words that are taken back are in those of the statement: "the 5th" in "5 February"."""
    ours = {re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", word) for word in re.findall(r"\w+", old.casefold())}
    theirs = {re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", word) for word in re.findall(r"\w+", was.casefold())}
    return bool((ours - {"the", "on", "in", "a", "an"}) & theirs) or old.strip() in was


def _as_before(value: str, was: str) -> str:
    """A value in the form of the one before it: "the 6th" in place of "5 February" is "6 February"."""
    day = re.fullmatch(r"(?:on )?(?:the )?(\d{1,2})(?:st|nd|rd|th)?", value, re.IGNORECASE)
    if day and re.search(r"[A-Za-z]{3}", was):
        return re.sub(r"\d{1,2}(?:st|nd|rd|th)?", day[1], was, count=1)
    number = re.fullmatch(r"\d[\d.,]*", value)
    if number and re.search(r"\d", was):
        return re.sub(r"\d[\d.,]*", value, was, count=1)
    return value


def _as_answer(text: str, before: Message | None) -> str | None:
    """A short answer to a question of the assistant as a whole sentence; `None` if it is none."""
    if before is None or before.role != "assistant" or len(text) > 60 or "\n" in text:
        return None
    question = _QUESTION.search(before.content[-_LONG:])
    if question is None:
        return None
    answer = text.strip(" .!。！")
    for pattern, sentence in _ANSWERS:
        if pattern.search(question.group()) and not re.search(r"\bI\b|[?？我]", answer, re.IGNORECASE):
            return sentence.format(answer)
    return None


def _summarize(candidates: Sequence[Candidate]) -> str:
    return "\n".join(f"- {candidate.text}" for candidate in candidates[:_MOST_SUMMARIZED])


def _confidence(candidates: Sequence[Candidate]) -> float | None:
    """The mean confidence of the candidates; `None` without candidates."""
    if not candidates:
        return None
    return round(sum(candidate.confidence for candidate in candidates) / len(candidates), 2)
