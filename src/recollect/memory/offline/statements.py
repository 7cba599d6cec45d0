"""Reads what a message of a user states, by the patterns of its language.

A pattern is matched where a clause begins. What is asked, supposed, quoted, played or ironic is not stated.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date

from .chinese_dates import chinese_moments_in
from .dates import moments_in
from .instructions import instruction_in, topic_of
from .moments import Moment, chinese_number_of, number_of
from .rules import Language, Operation, Patterns, Rule, attributes, patterns_of
from .sentences import is_chinese, sentences_of

_MOST_CLAUSES = 2000  # of a message: this bounds the time that a message takes
_LONGEST_VALUE = 60
_AND = re.compile(r",? (?:and|or|&) (?:to )?|, (?:and |or )?|和|跟|与|、|或者?|以及", re.IGNORECASE)
_DETERMINER = re.compile(r"^(?:any|all|most|some|the|my|our)\s+", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)|\bof\b|\bthe\b|,", re.IGNORECASE)
_MONTH_FIRST = re.compile(r"([A-Za-z]+)\.? (\d{1,2})( \d{4})?")
_NUMBER = re.compile(r"\d+")
_CHILDREN = {
    "kids": "child",
    "children": "child",
    "boys": "son",
    "girls": "daughter",
    "grandchildren": "grandchild",
}
_PEOPLE = frozenset({"child", "son", "daughter", "brother", "sister", "sibling", "grandchild"})
_PUPILS = frozenset(
    {"son", "daughter", "kid", "child", "grandson", "granddaughter", "niece", "nephew", "boy", "girl"}
)
_EACH_CHILD = re.compile(
    r"(?-i:(?P<n>[A-ZÀ-Þ][\w'-]+))"
    r"(?:(?:,? (?:who(?:'s| is)|aged) | \(| )(?P<age>\d{1,2}|[a-z]+)\)?)?(?=,| and|\)|$| &)"
)
_MIXED = re.compile(r"[A-Za-z']{2,} [A-Za-z']+ [A-Za-z']+|^[A-Za-z]+ [A-Za-z]+[，,]")
_OF_RELATION = re.compile(
    "^(?:little|older|younger|big|elder|eldest|oldest|youngest|twin|middle|best|old|new|late) "
)
_AGE_OF_RELATION = re.compile("^(?:new|old|late) ")
_NAMED = frozenset({"name", "home", "origin", "birthplace", "raised", "employer", "plan"})
_BACK = re.compile(r"\b(?:back|normal|instead)\b")
_ARTICLE = re.compile(
    r"(?:an?|the|only|head|director|chief|VP|vice president|deputy|team lead|leader)\b", re.IGNORECASE
)
_FILLER = re.compile(
    r"(?: (?:tbh|lol|haha|btw|imo|ngl|honestly|though|actually|too|as well|rn|atm|x|xx))+$", re.IGNORECASE
)
_TAG = re.compile(
    r",? (?:(?:would|will|could|can) you(?: please)?|ok|okay|yeah|right|alright)$", re.IGNORECASE
)
_OF_ANYBODY = frozenset({"allergy", "diet", "avoids"})  # known of people who are not introduced
_CAPITALIZED = re.compile(r"\b[A-ZÀ-Þ]\w+")
_MY = re.compile(r"\b(?:my|our)\b")
_AGES, _USERS_AGES = range(1, 120), range(10, 120)


@dataclass(frozen=True)
class Person:
    """Somebody or an animal: the user, if there is neither a relation nor a name."""

    relation: str = ""
    name: str = ""

    @property
    def is_user(self) -> bool:
        """Whether it is the user."""
        return not self.relation and not self.name

    def may_be(self, other: "Person") -> bool:
        """Whether both may be the same: by name if both have one, else by what they are to the user."""
        if self.is_user or other.is_user:
            return self.is_user and other.is_user
        if self.name and other.name:
            return self.name.casefold() == other.name.casefold()
        return self.relation.casefold() == other.relation.casefold()


USER = Person()


@dataclass(frozen=True)
class Statement:
    """One value of one attribute of somebody, as a clause states it."""

    attribute: str
    operation: Operation
    subject: Person
    value: str
    language: Language
    said_on: date
    relation: str = ""
    moment: Moment | None = None
    form: str = ""
    is_dated: bool = False
    until: Moment | None = None
    """When it ends, if that is said and still ahead."""
    sentence: str = ""
    """The sentence that states it, and the place of the value in it."""
    span: tuple[int, int] = (0, 0)
    moment_span: tuple[int, int] = (0, 0)

    @property
    def key(self) -> str:
        """What tells it from other values of the attribute; empty if there is only one value."""
        attribute = attributes()[self.attribute]
        if attribute.is_keyed and not (self.attribute == "instruction" and not self.relation):
            return (self.value if self.attribute == "plan" else self.relation).casefold()
        return "" if attribute.is_single else _DETERMINER.sub("", self.value.casefold())


@dataclass(frozen=True)
class Sentence:
    """A sentence, with what it states."""

    text: str
    language: Language
    statements: tuple[Statement, ...]
    is_stated: bool = True
    """Whether the user states something of themselves in it: it is no question, play or quote."""


Named = Callable[[str], Person | None]
"""Finds somebody by a name, or by what they are to the user."""


def in_lower_case(text: str) -> str:
    """The text in lower case, if that has the same places."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def plain(text: str) -> str:
    """A text with typewriter quotes."""
    return text.replace("’", "'").replace("‘", "'")


def read_text(text: str, said_on: date, find: Named) -> list[Sentence]:
    """The sentences of a text, with their statements."""
    reader = _Reader(said_on, find, not re.search(r"[A-Z]", text))
    sentences = [part for each in sentences_of(text) for part in _parts_of(each)]
    sentences = [each.strip() for each in sentences]
    languages: list[Language] = ["zh" if is_chinese(each) else "en" for each in sentences]
    if any(_made_up(each, language) for each, language in zip(sentences, languages, strict=True)):
        return [
            Sentence(each, language, (), False) for each, language in zip(sentences, languages, strict=True)
        ]
    found: list[Sentence] = []
    for each, language in zip(sentences, languages, strict=True):
        if patterns_of(language).setting["introduces"].search(each):
            break
        found.append(reader.read(each, language))
        if reader.clauses > _MOST_CLAUSES:
            break
    if len(found) > 1 and patterns_of(found[-1].language).setting["work_above"].search(
        found[-1].text.lower()
    ):
        return [replace(each, statements=(), is_stated=False) for each in found]
    return found


def _parts_of(sentence: str) -> list[str]:
    """The parts of a sentence that are read one by one: a correction within it is a sentence of its own."""
    parts = _by_language(sentence)
    return [
        part for each in parts for part in patterns_of("zh" if is_chinese(each) else "en").within.split(each)
    ]


def _by_language(sentence: str) -> list[str]:
    """The parts of a sentence that is partly in Chinese and partly in English."""
    if sentence.isascii() or not _MIXED.search(sentence):
        return [sentence]
    return [part for part in re.split("[，,。！!；;]+", sentence) if part.strip()]


def _made_up(sentence: str, language: Language) -> bool:
    return bool(patterns_of(language).setting["made_up"].search(in_lower_case(sentence)))


class _Reader:
    """Reads the sentences of one message."""

    def __init__(self, said_on: date, find: Named, is_lowercase: bool) -> None:
        self.clauses = 0
        self._said_on = said_on
        self._find = find
        self._is_lowercase = is_lowercase
        self._referent: Person | None = None
        self._subject_before = USER
        self._rules: list[Rule] = []
        self._named: dict[str, Person] = {}

    def read(self, sentence: str, language: Language) -> Sentence:
        patterns = patterns_of(language)
        setting = patterns.setting
        if setting["question"].search(sentence) or setting["ironic"].search(sentence):
            return Sentence(sentence, language, tuple(self._requests(sentence, patterns)), False)
        if setting["bare"].match(sentence):
            sentence = f"I {sentence[:1].lower()}{sentence[1:]}"
        elif self._referent is None and setting["bare_being"].match(sentence):
            sentence = f"I'm {sentence[:1].lower()}{sentence[1:]}"
        lowered = in_lower_case(sentence)
        found = {"", *(name for name, hint in patterns.hints.items() if hint.search(lowered))}
        self._rules = [rule for rule in patterns.rules if rule.hint in found]
        for word in _CAPITALIZED.findall(sentence):
            self._referent = self._find(word) or self._referent
        named = list(self._relations(sentence, patterns))
        stated = [*named, *self._clauses(sentence, patterns)]
        return Sentence(sentence, language, tuple(dict.fromkeys(stated)))

    def _requests(self, sentence: str, patterns: Patterns) -> Iterator[Statement]:
        """A question that asks for something from now on: "could you always answer in German?"."""
        asks = patterns.instructions.get("asks")
        order = sentence.rstrip("?？! ")
        if asks and asks.search(order):
            told = instruction_in(_TAG.sub("", order), 0, patterns)
            if told is not None:
                yield self._instruction(told.text, sentence, (0, told.end), patterns)

    # --- those close to the user ---

    def _relations(self, sentence: str, patterns: Patterns) -> Iterator[Statement]:
        """Those whom a sentence names, wherever it does."""
        for rule in self._rules:
            if not rule.is_anywhere:
                continue
            for match in rule.pattern.finditer(sentence):
                name = match["n"]
                if name.casefold() in self._named:
                    continue
                if rule.unless.search(name) or not _are_names(match, patterns):
                    continue
                if self._is_unreal(sentence, match.start(), patterns):
                    continue
                yield self._relation(match["r"].lower(), _capitalized(name), match, patterns)

    def _relation(self, relation: str, name: str, match: re.Match[str], patterns: Patterns) -> Statement:
        is_new = relation.startswith("new ") or relation in patterns.words["only_one"]
        relation = _AGE_OF_RELATION.sub("", relation) or "partner"
        relation = patterns.canonical.get(relation, relation)
        person = Person(relation, name)
        self._named[name.casefold()] = person
        self._referent = person
        return Statement(
            relation_kind(relation, patterns),
            "set",
            USER,
            name,
            patterns.language,
            self._said_on,
            relation,
            form="new" if is_new else "",
            sentence=match.string,
            span=match.span("n"),
        )

    # --- clauses ---

    def _clauses(self, sentence: str, patterns: Patterns) -> Iterator[Statement]:
        last = 0
        for begin, start in _starts(sentence, patterns):
            self.clauses += 1
            if start < last:
                continue
            if self._is_unreal(sentence, begin, patterns):
                return
            told = instruction_in(sentence, start, patterns)
            if told is not None:
                last = told.end
                yield self._instruction(told.text, sentence, (start, told.end), patterns)
                continue
            for found, end in self._match(sentence, begin, start, patterns):
                last = end
                yield found

    def _instruction(self, text: str, sentence: str, span: tuple[int, int], patterns: Patterns) -> Statement:
        topic = topic_of(text, patterns) or (topic_of(sentence, patterns) if _BACK.search(text) else "")
        return Statement(
            "instruction",
            "set",
            USER,
            text,
            patterns.language,
            self._said_on,
            topic,
            sentence=sentence,
            span=span,
        )

    def _is_unreal(self, sentence: str, place: int, patterns: Patterns) -> bool:
        return bool(place and patterns.setting["unreal"].search(in_lower_case(sentence), 0, place))

    def _match(
        self, sentence: str, begin: int, start: int, patterns: Patterns
    ) -> Iterator[tuple[Statement, int]]:
        text, name = sentence, ""
        if patterns.language == "zh" and start < len(sentence):
            text, name = self._with_mark(sentence, start)
        is_found = False
        for rule in self._rules:
            if rule.is_anywhere or (rule.is_lowercase and not self._is_lowercase):
                continue
            if is_found and rule.operation != "set":
                continue
            match = rule.pattern.match(text, start)
            if match is None:
                continue
            read = list(self._read_match(rule, match, begin, name, patterns))
            if read:
                yield from ((each, match.end()) for each in read)
                if read[0].operation == "set":
                    return
                is_found = True  # an end may be followed by what holds instead

    def _with_mark(self, sentence: str, start: int) -> tuple[str, str]:
        """The sentence with a mark in place of a known name at the beginning of a clause."""
        for length in (4, 3, 2):
            for offset in (0, 1):
                name = sentence[start + offset : start + offset + length]
                if offset and sentence[start] not in "和跟与":
                    continue
                if len(name) == length and self._person(name):
                    marked = "@" + "\0" * (length - 1)
                    return (
                        sentence[: start + offset] + marked[:1] + sentence[start + offset + length :],
                        name,
                    )
        return sentence, ""

    def _person(self, name: str) -> Person | None:
        return self._named.get(name.casefold()) or self._find(name)

    def _read_match(
        self, rule: Rule, match: re.Match[str], begin: int, name: str, patterns: Patterns
    ) -> Iterator[Statement]:
        sentence = match.string
        after = _rest_of_clause(sentence, match.end(), patterns)
        if rule.unless_match.search(match.group()) or rule.unless_after.match(after):
            return
        if patterns.setting["taint"].search(in_lower_case(sentence), match.start()):
            return
        if rule.requires and not rule.requires.search(match.group() + after):
            return
        subject = self._subject(match, name, rule.attribute) if _are_names(match, patterns) else None
        if subject is None:
            return
        clause = sentence[begin : match.end()] + after
        moment = _moment_in(clause, self._said_on, patterns.language, is_plan=rule.needs_date)
        if rule.needs_date and not _is_certain(moment):
            return
        if rule.attribute == "children":
            yield from self._children(match, patterns)
            return
        statement = self._statement(rule, match, subject, moment, begin, patterns)
        if statement is not None:
            self._subject_before = subject
            if not subject.is_user:
                self._referent = subject
            yield from self._values(statement, rule)

    def _statement(
        self,
        rule: Rule,
        match: re.Match[str],
        subject: Person,
        moment: Moment | None,
        begin: int,
        patterns: Patterns,
    ) -> Statement | None:
        groups = match.groupdict()
        value = rule.value_text or _FILLER.sub("", (groups.get("v") or "").strip(" ,."))
        attribute, relation = rule.attribute, rule.relation_text or (groups.get("r") or "").lower().strip()
        if not _is_value(rule, value, relation, patterns) or _is_of_pupil(rule, match, subject):
            return None
        if attribute in ("relation", "partner") and rule.operation == "end":
            return self._parting(rule, match, subject, moment, patterns)
        until: Moment | None = None
        if moment is not None and _is_ahead(moment, self._said_on) and not rule.needs_date:
            if moment.is_until or not rule.future:
                until, moment = (moment if moment.is_until else None), None
            else:
                attribute, value = "plan", rule.future.format(value)
        elif rule.noun != "{}":
            value = rule.noun.format(value, t=groups.get("t"))
        if rule.is_timeless:
            moment = None
        if (
            rule.operation == "set"
            and attribute != "plan"
            and not (attributes()[attribute].has_since or rule.needs_date)
        ):
            moment = None
        value = _MY.sub("their", value) if patterns.language == "en" else value
        if rule.is_lowercase:
            value = value.title()
        if attribute == "job" and patterns.language == "en" and rule.operation == "set":
            value = _with_article(value)
        if attribute == "habit":
            value = f"{_third_person(groups['verb'])} {value}"
        dated = attributes()[attribute].is_dated or rule.is_dated
        return Statement(
            attribute,
            rule.operation,
            subject,
            value,
            patterns.language,
            self._said_on,
            relation,
            moment,
            rule.form,
            dated,
            until if attributes()[attribute].has_since else None,
            match.string,
            match.span("v") if "v" in groups else match.span(),
            (begin + moment.start, begin + moment.end) if moment else (0, 0),
        )

    def _parting(
        self, rule: Rule, match: re.Match[str], subject: Person, moment: Moment | None, patterns: Patterns
    ) -> Statement | None:
        """The end of a relation, by separation or death."""
        groups = match.groupdict()
        person = subject
        if groups.get("n"):
            person = self._person(groups["n"]) or Person("", groups["n"])
        attribute = "partner" if rule.attribute == "partner" else relation_kind(person.relation, patterns)
        return Statement(
            attribute,
            "end",
            USER,
            person.name,
            patterns.language,
            self._said_on,
            person.relation,
            moment,
            rule.form,
            sentence=match.string,
            span=match.span(),
        )

    def _subject(self, match: re.Match[str], name: str, attribute: str) -> Person | None:
        """Whom a clause is about; `None` if that is nobody known."""
        groups = match.groupdict()
        if groups.get("rel"):
            relation = groups["rel"].lower()
            canonical = patterns_of("zh" if is_chinese(relation) else "en").canonical
            return self._close_person(canonical.get(relation, relation), groups.get("rn") or "")
        if groups.get("who"):
            who = name if groups["who"] == "@" else groups["who"]
            return self._person(who) or (Person("", who) if attribute in _OF_ANYBODY else None)
        if groups.get("pron"):
            return self._referent
        if "same" in groups:
            return self._subject_before if match.start() else None
        if "I" in groups and groups["I"] is None and ("rel" in groups):  # a Chinese clause without a subject
            return self._referent or (None if self._mentions_others(match) else USER)
        if groups.get("I") and is_chinese(match.string):
            self._referent = None
        return USER

    def _mentions_others(self, match: re.Match[str]) -> bool:
        """Whether somebody else is mentioned before, so that it is not certain whom a clause is about."""
        before = match.string[: match.start()]
        return any(each in before for each in patterns_of("zh").words["relation"] if len(each) > 1)

    def _close_person(self, relation: str, name: str) -> Person:
        known = self._person(name) if name else self._find(relation)
        return replace(known, relation=known.relation or relation) if known else Person(relation, name)

    def _children(self, match: re.Match[str], patterns: Patterns) -> Iterator[Statement]:
        """How many children or animals of a kind the user has, and what they are called."""
        counted = match["r"]
        noun = counted.split()[-1].lower()
        base = Statement(
            "relatives",
            "set",
            USER,
            counted,
            patterns.language,
            self._said_on,
            noun,
            sentence=match.string,
            span=match.span("r"),
        )
        yield base
        one = _CHILDREN.get(noun) or noun.removesuffix("s")
        for each in _EACH_CHILD.finditer(match["names"] or ""):
            person = Person(one, each["n"])
            self._named[each["n"].casefold()] = person
            yield replace(
                base, attribute="person" if one in _PEOPLE else "pet", value=each["n"], relation=one
            )
            age = _number(each["age"] or "", "en")
            if age:
                yield replace(base, attribute="age", subject=person, value=age, relation="", is_dated=True)

    def _values(self, statement: Statement, rule: Rule) -> Iterator[Statement]:
        """The statement, for each of its values."""
        value = statement.value
        if rule.value == "list":
            for each in filter(None, map(str.strip, _AND.split(value))):
                one = replace(statement, value=_as_word(_DETERMINER.sub("", each), statement))
                yield replace(one, relation=_verb_for(one)) if rule.attribute == "avoids" else one
        elif rule.value == "number":
            number = _number(value, statement.language)
            if number and int(number) in (_USERS_AGES if statement.subject.is_user else _AGES):
                yield replace(statement, value=number)
        elif rule.value == "day":
            yield replace(statement, value=_day(value))
        elif rule.attribute in ("possession",) and rule.operation != "set":
            yield replace(statement, value=_DETERMINER.sub("", value))
        else:
            yield statement


def _is_value(rule: Rule, value: str, relation: str, patterns: Patterns) -> bool:
    """Whether words may be the value of an attribute."""
    if len(value) > _LONGEST_VALUE or rule.unless.search(value):
        return False
    first = value.removeprefix("the ").split(" ")[0]
    is_name = rule.attribute not in _NAMED or first not in patterns.words["not_a_name"]
    return is_name and (rule.attribute != "amount" or bool(relation))


def _is_of_pupil(rule: Rule, match: re.Match[str], subject: Person) -> bool:
    """Whether a child "started at" somewhere: that is a school rather than an employer."""
    is_work = rule.attribute != "employer" or "work" in match.group().lower()
    return not is_work and subject.relation in _PUPILS


def relation_kind(relation: str, patterns: Patterns) -> str:
    """The attribute of a relation: there is one partner, and there may be several friends."""
    noun = relation.split()[-1] if patterns.language == "en" and relation else relation
    words = patterns.words
    if noun in words["partner"]:
        return "partner"
    if noun in words["parent"]:
        return "parent"
    is_pet = (
        relation in words["pet"]
        or noun in words["pet"]
        or any(relation.endswith(each) for each in words["pet"])
    )
    return "pet" if is_pet else "person"


def _are_names(match: re.Match[str], patterns: Patterns) -> bool:
    """Whether the groups of a match are what they should be: relations, and names."""
    groups = match.groupdict()
    words = patterns.words
    if patterns.language == "zh":
        return True
    relation = groups.get("rel") or (groups.get("r") if "n" in groups else "")
    if relation and not _is_relation(relation.lower(), patterns):
        return False
    named = " ".join(filter(None, (groups.get(name) for name in ("n", "rn", "who"))))
    capitalized = [word for word in named.split() if word[:1].isupper()]
    return not any(word in words["not_a_name"] for word in capitalized)


def _is_relation(relation: str, patterns: Patterns) -> bool:
    """Whether words say what somebody is to the user, such as "little sister" and "golden retriever"."""
    known = patterns.words["relation"] | patterns.words["pet"]
    plain = _OF_RELATION.sub("", relation)
    return plain in known or relation in known


# --- places where a clause begins ---


def _starts(sentence: str, patterns: Patterns) -> Iterator[tuple[int, int]]:
    """Where clauses begin: with their openings, and without."""
    begins = [0, *(match.end() for match in patterns.setting["separator"].finditer(sentence))]
    opening = patterns.setting["opening"]
    for begin in begins:
        start = begin
        yield begin, start
        for _ in range(6):
            match = opening.match(sentence, start)
            if not match or match.end() == start or match.end() >= len(sentence):
                break
            start = match.end()
            yield begin, start


def _rest_of_clause(sentence: str, end: int, patterns: Patterns) -> str:
    match = patterns.setting["separator"].search(sentence, end)
    return sentence[end : match.start() if match else len(sentence)]


# --- values ---


def _with_article(job: str) -> str:
    """A job as it stands after "is"."""
    if _ARTICLE.match(job):
        return job
    return f"{'an' if job[:1].lower() in 'aeiou' else 'a'} {job}"


def _as_word(value: str, statement: Statement) -> str:
    """A food or another thing as it stands within a sentence; what somebody is allergic to in the plural."""
    words = patterns_of(statement.language).words
    known = words["food"] | words["allergen"]
    if value.lower() in known:
        value = value.lower()
    return f"{value}s" if f"{value}s" in known else value


def _verb_for(statement: Statement) -> str:
    """Whether a food is eaten or drunk."""
    is_drink = statement.value.lower() in patterns_of(statement.language).words["drink"]
    if statement.language == "zh":
        return "喝" if is_drink else "吃"
    return "drink" if is_drink else "eat"


def _third_person(verb: str) -> str:
    first, _, rest = verb.lower().partition(" ")
    changed = {"go": "goes", "do": "does", "have": "has"}.get(first, f"{first}s")
    return f"{changed} {rest}".strip()


def _moment_in(clause: str, said_on: date, language: Language, is_plan: bool) -> Moment | None:
    if language == "zh":
        found = chinese_moments_in(clause.replace("了", " ") if is_plan else clause, said_on)
    else:
        found = moments_in(clause, said_on, "future" if is_plan else None)
    return found[0] if len(found) == 1 else None


def _is_certain(moment: Moment | None) -> bool:
    return moment is not None and moment.precision not in ("week", "weekend", "season")


def _is_ahead(moment: Moment, said_on: date) -> bool:
    return moment.day > said_on


def _number(words: str, language: Language) -> str:
    digits = _NUMBER.search(words)
    if digits:
        return digits.group()
    try:
        return str(chinese_number_of(words) if language == "zh" else number_of(words))
    except (KeyError, IndexError):
        return ""


def _day(words: str) -> str:
    """A day of the year, the number first: "3 May"."""
    text = " ".join(_ORDINAL.sub(" ", words).split()).rstrip(".")
    match = _MONTH_FIRST.fullmatch(text)
    return f"{match[2]} {match[1]}{match[3] or ''}" if match else text


def _capitalized(name: str) -> str:
    return name[:1].upper() + name[1:]
