"""What is known of a user and those close to them: a value for each attribute, with its evidence.

A statement sets a value, denies it or ends it. The latest value holds if an attribute has one at a time. A
correction takes the place of the statement before it. What is mentioned together with a change that is not
understood becomes doubtful.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, cast

from ..entry import Entry
from ..pipeline.stages import MOST_EVIDENCE, REFERENCE, Candidate
from ..texts.remembered import remember
from .compose import compose
from .moments import Moment
from .rules import Language, Operation, attributes, patterns_of
from .statements import USER, Person, Sentence, Statement, read_text

DOUBT = 0.3
"""The confidence of an entry that a later message puts in doubt."""
_CONFIDENCE = 0.9
_WORK = ("employer", "job", "field", "work")
_ELSEWHERE = ("employer", "job")
_AT = re.compile(r" (?:at|for|with) (.+)$")
_ENDED_TOGETHER = {"work": _WORK, "possession": ("possession", "amount")}
_CUES = ("parting", "change", "replaced", "relents")
_RELATIONS = ("partner", "parent", "person", "pet")
_ENDS_WORK = frozenset({"retired", "unemployed", "between jobs", "已退休", "已失业"})
_ALONE = frozenset({"single", "divorced", "widowed", "separated", "已离婚"})
_ENDED_ALONE = frozenset({"partner", "parent", "person"})
_DOUBTED = frozenset(
    {
        "home",
        "employer",
        "job",
        "medication",
        "allergy",
        "condition",
        "diet",
        "possession",
        "plan",
        "study",
        "habit",
        "avoids",
        "amount",
        "relatives",
        "school",
    }
)
_BEFORE_TRIP, _AFTER_TRIP = timedelta(days=3), timedelta(days=30)
_WORD = re.compile(r"[^\W_]+")
_COMMON = frozenset(
    {"the", "and", "for", "with", "user", "part", "time", "only", "new", "old", "two", "three", "main"}
)
_THIRD_PERSON = re.compile(r"\bthe user\b", re.IGNORECASE)
_FORBIDS = re.compile(r"no |the assistant (?:not to|to (?:stop|avoid|never|skip))\b")
_OF_WISHES = frozenset({"assistant", "suggestions", "answers", "never", "avoid", "always", "please", "using"})
_ALLOWED = re.compile(r"(?:the )?(.+) to be allowed")
_UNIT = re.compile(r" ?[a-z]+$")
_VERB = re.compile(r"\bI (\w+s)\b")
_FIRST_PERSON = {"is": "I am", "has": "I have", "was": "I was", "does": "I do", "studies": "I study"}
_LONGEST_READ = 200  # characters of the text of an entry
_NO_DAY = date(2000, 1, 1)  # the text of an entry has no dates that depend on a day
_CONJUNCTION = re.compile(r"[,;，；。.!?！？]|\band\b|\bbut\b")


@dataclass(eq=False)
class Fact:
    """A value that holds, or held until a later statement of the same messages."""

    statement: Statement
    text: str
    content_id: str
    """The id of the entry, or a reference among the candidates."""
    evidence: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    is_new: bool = True
    is_current: bool = True
    is_said_again: bool = False
    doubt: str = ""
    """The message that puts it in doubt."""
    doubted: str = field(default="", repr=False)
    """Why it is in doubt."""


class Register:
    """The values that are known, as the messages of a run change them."""

    def __init__(self, known: Iterable[Entry] = ()) -> None:
        self._facts = [fact for fact in map(_fact_of, known) if fact is not None]
        self._recent: list[Fact] = []
        self._references = 0

    # --- people ---

    def find(self, words: str) -> Person | None:
        """Somebody with this name, or the only one with this relation."""
        wanted = words.casefold()
        named = [
            Person(fact.statement.relation, fact.statement.value)
            for fact in self._current()
            if fact.statement.attribute in _RELATIONS
            and fact.statement.subject.is_user
            and fact.statement.value
        ]
        named += [fact.statement.subject for fact in self._current() if fact.statement.subject.relation]
        by_name = [person for person in named if person.name.casefold() == wanted]
        by_relation = list(dict.fromkeys(each for each in named if each.relation.casefold() == wanted))
        found = by_name or (by_relation if len(by_relation) == 1 else [])
        return found[-1] if found else None

    # --- statements ---

    def apply(self, statement: Statement, message_id: str) -> bool:
        """Change the values as a statement says; `False` if it is not known what it is about."""
        if statement.operation == "move":
            return self._move(statement, message_id)
        if statement.operation == "end":
            return self._end(statement, message_id)
        rivals = self._rivals(statement)
        if statement.attribute == "weight" and not _UNIT.search(statement.value):
            unit = next((found.group() for f in rivals if (found := _UNIT.search(f.statement.value))), "")
            if not unit:  # a number alone does not say what was weighed
                return False
            statement = replace(statement, value=f"{statement.value}{unit}")
        if statement.form == "arrived" and not any(f.statement.attribute == "plan" for f in rivals):
            return False
        if statement.attribute == "instruction" and (allowed := _ALLOWED.match(statement.value)):
            self._allow(allowed[1], message_id)
        same = next((fact for fact in rivals if _says_the_same(fact.statement, statement)), None)
        if same is not None:
            self._say_again(same, statement, message_id)
            return True
        if (
            statement.operation == "not"
            and "not" not in attributes()[statement.attribute].texts[statement.language]
        ):
            return False
        self._add(statement, message_id, rivals)
        if statement.attribute == "allergy" and statement.operation == "not":
            self._doubt_wider(statement, message_id)
        return True

    def _current(self) -> Iterator[Fact]:
        return (fact for fact in self._facts if fact.is_current)

    def _of(self, statement: Statement, *names: str) -> list[Fact]:
        return [
            fact
            for fact in self._current()
            if fact.statement.attribute in (names or (statement.attribute,))
            and fact.statement.subject.may_be(statement.subject)
        ]

    def _rivals(self, statement: Statement) -> list[Fact]:
        """The values that cannot hold together with a new one."""
        same_key = [fact for fact in self._of(statement) if fact.statement.key == statement.key]
        if statement.attribute == "plan":
            same_key = [fact for fact in same_key if not _is_over(fact.statement, statement)]
        if statement.attribute in _WORK and statement.operation == "set":
            names = _WORK if statement.value in _ENDS_WORK else ("work",)
            same_key += [fact for fact in self._of(statement, *names) if fact not in same_key]
        if statement.attribute == "marital" and statement.value in _ALONE:
            same_key += self._of(statement, "partner")
        if statement.attribute == "person" and statement.form == "new":
            same_key += [
                fact for fact in self._of(statement) if fact.statement.relation == statement.relation
            ]
        if statement.attribute == "pet":
            same_key += [
                f for f in self._of(statement, "relatives") if f.statement.value == f"a {statement.relation}"
            ]
        if statement.attribute == "home":
            moves = [fact for fact in self._of(statement, "plan") if statement.value in fact.statement.value]
            same_key += moves
        if statement.attribute == "employer":
            same_key += [f for f in self._of(statement, "plan") if statement.value in f.statement.value]
        if statement.operation == "set" and statement.attribute in _ELSEWHERE:
            same_key += [f for f in self._of(statement, *_ELSEWHERE) if _is_elsewhere(f.statement, statement)]
        return list(dict.fromkeys(same_key))

    def _say_again(self, fact: Fact, statement: Statement, message_id: str) -> None:
        is_dated = statement.moment is not None and fact.statement.moment is None
        if (is_dated or statement.is_dated) and compose(statement) != fact.text:
            self._add(statement, message_id, [fact])
            return
        fact.evidence = tuple(dict.fromkeys((*fact.evidence, message_id)))[:MOST_EVIDENCE]
        fact.is_said_again = not fact.is_new
        source = replace(fact.statement, sentence=statement.sentence, span=statement.span)
        fact.statement = replace(source, moment_span=statement.moment_span)
        self._recent.append(fact)

    def _add(self, statement: Statement, message_id: str, replaced: Sequence[Fact]) -> Fact:
        self._references += 1
        for fact in replaced:
            fact.is_current = False
        new = Fact(
            statement,
            compose(statement),
            f"{REFERENCE}{self._references}",
            (message_id,),
            tuple(fact.content_id for fact in replaced),
        )
        self._facts.append(new)
        self._recent.append(new)
        return new

    def _end(self, statement: Statement, message_id: str) -> bool:
        names = _ENDED_TOGETHER.get(statement.attribute, (statement.attribute,))
        if statement.attribute in _RELATIONS and not statement.relation:
            names = _RELATIONS if statement.form == "died" else ("partner",)
        ended = [
            fact
            for fact in self._of(statement, *names)
            if fact.statement.operation != "end" and _is_meant(fact.statement, statement)
        ]
        if ended and _template_is_missing(statement, ended[0].statement):
            for fact in ended:
                self._doubt(fact, message_id, "mentioned with a change in a later message")
            return True
        if not ended:
            is_alone = attributes()[statement.attribute].is_ended_alone or (
                statement.attribute in _ENDED_ALONE and statement.form == "died" and statement.relation
            )
            if is_alone:
                self._add(statement, message_id, [])
            return bool(is_alone)
        first = sorted(ended, key=lambda fact: names.index(fact.statement.attribute))[0].statement
        words = replace(statement, attribute=first.attribute, value=first.value, relation=first.relation)
        if first.attribute == "work":
            words = replace(words, value="")
        self._add(words, message_id, ended)
        self._doubt_dependents(first, message_id)
        return True

    def _move(self, statement: Statement, message_id: str) -> bool:
        plans = [fact for fact in self._of(statement, "plan") if _is_meant(fact.statement, statement)]
        if not plans:
            return False
        last = plans[-1]
        self._add(
            replace(statement, operation="set", value=last.statement.value, sentence=last.statement.sentence),
            message_id,
            [last],
        )
        self._doubt_dependents(last.statement, message_id)
        return True

    # --- corrections ---

    def correct(self, statement: Statement, of: Statement, message_id: str) -> bool:
        """Put a statement in place of one that was a mistake."""
        wrong = next(
            (
                fact
                for fact in reversed(self._facts)
                if fact.is_current
                and fact.statement.attribute == of.attribute
                and fact.statement.value == of.value
                and fact.statement.subject.may_be(of.subject)
            ),
            None,
        )
        if wrong is None:
            return False
        evidence = (message_id, *wrong.evidence)
        new = self._add(statement, message_id, [wrong])
        if wrong.is_new:  # it was never true, and nobody has read it yet
            new.replaces = wrong.replaces
            new.evidence = tuple(dict.fromkeys(evidence))[:MOST_EVIDENCE]
            self._facts.remove(wrong)
            self._recent = [fact for fact in self._recent if fact is not wrong]
        self._rename(of, statement)
        return True

    def _rename(self, wrong: Statement, right: Statement) -> None:
        """Give the right name to those of whom other values are known under the wrong one."""
        if wrong.attribute not in _RELATIONS:
            return
        person, renamed = Person(wrong.relation, wrong.value), Person(right.relation, right.value)
        for fact in self._facts:
            if fact.is_new and fact.is_current and fact.statement.subject == person:
                fact.statement = replace(fact.statement, subject=renamed)
                fact.text = compose(fact.statement)

    def recent(self) -> list[Statement]:
        """The last statements that hold, the newest first."""
        return [fact.statement for fact in reversed(self._recent) if fact.is_current]

    # --- doubt ---

    def doubt_last(self, message_id: str) -> None:
        """Put the last statement in doubt: it is taken back, and what holds instead is not understood."""
        last = next((fact for fact in reversed(self._recent) if fact.is_current), None)
        if last is not None:
            self._doubt(last, message_id, "corrected by a later message")

    def doubt_changed(self, sentence: Sentence, understood: Set[str], message_id: str) -> None:
        """Put in doubt the values of attributes that a sentence tells a change of, without a new value."""
        held = {fact.statement.attribute for fact in self._current()} - understood
        for name, topic in patterns_of(sentence.language).topics.items():
            if name in held and topic.search(sentence.text):
                for fact in self._open(message_id):
                    if fact.statement.attribute == name and fact.statement.subject.is_user:
                        self._doubt(fact, message_id, "a later message tells of a change")

    def doubt_mentioned(self, sentence: Sentence, message_id: str) -> None:
        """Put in doubt what a sentence mentions that speaks of a change, and that is not understood."""
        setting = patterns_of(sentence.language).setting
        for clause in _CONJUNCTION.split(sentence.text) if any(self._current()) else ():
            cues = {name for name in _CUES if setting[name].search(clause.lower())}
            for fact in self._open(message_id) if cues else ():
                is_relation = fact.statement.attribute in _RELATIONS
                cue = "parting" if is_relation else "change"
                is_open = is_relation or fact.statement.attribute in _DOUBTED
                is_changed = cue in cues and _is_mentioned(fact.statement, clause)
                is_replaced = is_relation and "replaced" in cues and _is_role_in(fact.statement, clause)
                is_relented = "relents" in cues and _is_wish_for(fact.statement, clause)
                if (is_open and (is_changed or is_replaced)) or is_relented:
                    self._doubt(fact, message_id, "mentioned with a change in a later message")

    def _allow(self, what: str, message_id: str) -> None:
        """Put in doubt the instructions that forbid something."""
        for fact in list(self._current()):
            if fact.statement.attribute == "instruction" and f"no {what}" in fact.statement.value:
                self._doubt(fact, message_id, "allowed in a later message")

    def _doubt_wider(self, denied: Statement, message_id: str) -> None:
        """Put in doubt an allergy to nuts if one to peanuts is denied."""
        for fact in self._of(denied):
            value = fact.statement.value
            if fact.statement.operation == "set" and denied.value != value and denied.value.endswith(value):
                self._doubt(fact, message_id, "mentioned with a change in a later message")

    def _open(self, message_id: str) -> list[Fact]:
        """The values that a message may put in doubt: it does not state them itself."""
        return [
            fact
            for fact in self._current()
            if message_id not in fact.evidence and fact.statement.operation != "end"
        ]

    def _doubt_dependents(self, ended: Statement, message_id: str) -> None:
        """Put in doubt what rested on a plan or on somebody who is gone."""
        for fact in list(self._current()):
            if message_id in fact.evidence:
                continue
            if _rests_on(fact.statement, ended):
                self._doubt(fact, message_id, f"rested on what has changed: {ended.value}")

    def _doubt(self, fact: Fact, message_id: str, reason: str) -> None:
        fact.doubt, fact.doubted = message_id, reason

    # --- results ---

    def candidates(self) -> list[Candidate]:
        """The new values, those that were said again, and those in doubt, in this order."""
        found = [_candidate(fact) for fact in self._facts if fact.is_new]
        known = [fact for fact in self._facts if not fact.is_new and fact.is_current]
        found += [_confirmation(fact) for fact in known if fact.is_said_again and not fact.doubt]
        return found + [_in_doubt(fact) for fact in known if fact.doubt]


def _is_elsewhere(known: Statement, new: Statement) -> bool:
    """Whether a job is one at another employer than the new one."""
    place, other = _employer_in(known), _employer_in(new)
    return known.attribute != new.attribute and bool(place) and bool(other) and place != other


def _employer_in(statement: Statement) -> str:
    if statement.attribute == "employer":
        return statement.value
    match = _AT.search(statement.value)
    return match[1] if match else ""


def _template_is_missing(statement: Statement, known: Statement) -> bool:
    form = "died" if statement.form == "died" else "end"
    return form not in attributes()[known.attribute].texts[statement.language]


def _says_the_same(known: Statement, new: Statement) -> bool:
    return (
        known.attribute == new.attribute
        and known.operation == new.operation
        and known.value.casefold() == new.value.casefold()
        and known.relation.casefold() == new.relation.casefold()
        and (known.attribute != "plan" or _same_day(known.moment, new.moment))
    )


def _same_day(known: Moment | None, new: Moment | None) -> bool:
    return known is None or new is None or known.value == new.value


def _is_over(known: Statement, new: Statement) -> bool:
    """Whether a plan was for a day before the new one was made: the next exam is another one."""
    return known.moment is not None and known.moment.day < new.said_on


def _is_meant(known: Statement, statement: Statement) -> bool:
    """Whether an end is that of a known value."""
    if statement.attribute in _RELATIONS:
        if statement.value and known.value:
            return known.value.casefold() == statement.value.casefold()
        return not statement.relation or known.relation == statement.relation
    if not statement.value:
        return True
    if statement.attribute == "diet":
        return statement.value in ("meat",) or _words_of(statement.value) <= _words_of(known.value)
    theirs, ours = _words_of(known.value), _words_of(statement.value)
    if known.attribute == "amount":
        theirs |= _words_of(known.relation)
    if not theirs or not ours:
        return statement.value in known.value or known.value in statement.value
    return ours <= theirs or theirs <= ours or statement.value in known.value


def _words_of(value: str) -> frozenset[str]:
    return frozenset(_WORD.findall(value.casefold())) - {"a", "an", "the", "my", "our", "to"}


def _is_mentioned(statement: Statement, clause: str) -> bool:
    """Whether a clause names the value of a statement."""
    if statement.language == "zh":
        value = statement.value.removeprefix("去")
        return len(value) > 1 and value in clause
    said = frozenset(_WORD.findall(clause.casefold()))
    if statement.attribute in ("habit", "amount") and statement.relation:
        if statement.relation.split()[-1] in said:
            return True
        if statement.attribute == "habit":
            return False
    words = [
        word for word in _WORD.findall(statement.value.casefold()) if len(word) > 2 and word not in _COMMON
    ]
    return bool(words) and words[-1] in said


def _is_role_in(statement: Statement, clause: str) -> bool:
    """Whether a clause names what somebody is to the user, if that may be somebody else now."""
    patterns = patterns_of(statement.language)
    role = statement.relation.split()[-1] if statement.relation else ""
    if role not in patterns.words["role"]:
        return False
    return (
        role in clause
        if statement.language == "zh"
        else bool(re.search(rf"\b{role}(?:e?s)?\b", clause.lower()))
    )


def _is_wish_for(statement: Statement, clause: str) -> bool:
    """Whether a clause names what an instruction forbids."""
    if statement.attribute != "instruction" or not _FORBIDS.match(statement.value):
        return False
    wish = {word for word in _WORD.findall(statement.value.casefold()) if len(word) > 4} - _OF_WISHES
    return not wish.isdisjoint(_WORD.findall(clause.casefold()))


def _rests_on(statement: Statement, ended: Statement) -> bool:
    """Whether a statement is about a plan that has changed, or about somebody who is gone."""
    if ended.attribute in _RELATIONS:
        return statement.subject.may_be(Person(ended.relation, ended.value)) and not statement.subject.is_user
    if ended.attribute != "plan" or statement.attribute != "plan" or statement.operation == "end":
        return False
    place = ended.value.rpartition(" to ")[2] if " to " in ended.value else ended.value.removeprefix("去")
    if place and place != ended.value and place in statement.value:
        return True
    if ended.moment is None or statement.moment is None or place == ended.value:
        return False
    return ended.moment.day - _BEFORE_TRIP <= statement.moment.day <= ended.moment.day + _AFTER_TRIP


# --- entries and candidates ---


def _data_of(statement: Statement) -> dict[str, Any]:
    """The structured part of an entry: by this it is found and changed again."""
    data = {
        "subject": "user" if statement.subject.is_user else statement.subject.relation,
        "name": statement.subject.name,
        "attribute": statement.attribute,
        "operation": statement.operation,
        "value": statement.value,
        "relation": statement.relation,
        "language": statement.language,
        "date": statement.moment.value if statement.moment else "",
        "form": statement.form,
    }
    return {name: value for name, value in data.items() if value}


def _fact_of(entry: Entry) -> Fact | None:
    """What an entry states: as a register wrote it, or as its text says it in plain words."""
    data = entry.data
    name = data.get("attribute")
    if entry.retired_at is not None:
        return None
    if name not in attributes() or data.get("language") not in ("en", "zh"):
        stated = _stated_in(entry.text)
        return Fact(stated, entry.text, entry.content_id, is_new=False) if stated else None
    person = USER if data.get("subject") == "user" else Person(_text(data, "subject"), _text(data, "name"))
    statement = Statement(
        cast(str, name),
        cast(Operation, data.get("operation", "set")),
        person,
        _text(data, "value"),
        cast(Language, data["language"]),
        (entry.said_at or entry.learned_at).date(),
        _text(data, "relation"),
        _moment_of(_text(data, "date")),
        _text(data, "form"),
    )
    return Fact(statement, entry.text, entry.content_id, is_new=False)


@remember
def _stated_in(text: str) -> Statement | None:
    """What the text of a person or a model states; `None` if that is not one value for certain."""
    said = _THIRD_PERSON.sub("I", text[:_LONGEST_READ]).replace("I's ", "My ").replace("用户", "我")
    said = _VERB.sub(lambda match: _FIRST_PERSON.get(match[1], f"I {match[1][:-1]}"), said, count=1)
    sentences = read_text(said, _NO_DAY, lambda _: None)
    found = [each for sentence in sentences for each in sentence.statements]
    return found[0] if len(found) == 1 and len(sentences) == 1 else None


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""


def _moment_of(value: str) -> Moment | None:
    """The moment of a stored date."""
    parts = value.split("-")
    try:
        day = date(int(parts[0]), *(int(each) for each in [*parts[1:], "1", "1"][:2]))
    except ValueError:
        return None
    return Moment(0, 0, "", day, "day" if len(parts) == 3 else "month" if len(parts) == 2 else "year", "")


def _candidate(fact: Fact) -> Candidate:
    statement = fact.statement
    attribute = attributes()[statement.attribute]
    is_slot = attribute.is_single and not attribute.is_keyed and statement.subject.is_user
    is_end = statement.operation == "end"
    moment = statement.moment
    ended_on = moment.value if moment else statement.said_on.isoformat()
    return Candidate(
        attribute.kind,
        fact.text,
        fact.evidence,
        DOUBT if fact.doubt else _CONFIDENCE,
        (moment.value if moment else None) if not is_end else ended_on,
        moment.last_value if moment and not is_end else None,
        statement.attribute if is_slot else None,
        {**_data_of(statement), **({"doubt": fact.doubted} if fact.doubt else {})},
        replaces=fact.replaces,
        expires_at=statement.until.value if statement.until else None,
        reference=fact.content_id,
        is_trusted=True,
    )


def _confirmation(fact: Fact) -> Candidate:
    kind = attributes()[fact.statement.attribute].kind
    return Candidate(kind, fact.text, fact.evidence, confirms=fact.content_id, is_trusted=True)


def _in_doubt(fact: Fact) -> Candidate:
    """A known entry with less confidence. It takes the place of the one that nothing contradicted."""
    statement = fact.statement
    return Candidate(
        attributes()[statement.attribute].kind,
        fact.text,
        (fact.doubt,),
        DOUBT,
        statement.moment.value if statement.moment else None,
        data={**_data_of(statement), "doubt": fact.doubted},
        replaces=(fact.content_id,),
        doubts=fact.content_id,
        is_trusted=True,
    )
