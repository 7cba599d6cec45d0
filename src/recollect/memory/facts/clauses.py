"""Splits sentences about the user into clauses, and texts of entries into facts.

"I live in Lisbon and am allergic to nuts" states two facts, and one of them can end without the other.
Sentences may be in the first person, as people say them, or in the third, as entries have them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ..texts.health import concerns_health
from ..texts.remembered import remember_list
from .chinese_clauses import chinese_clauses_of, lacks_subject
from .slots import OCCUPATION, Rewrite, Slot, slot_of

"""Gives a clause in the third person; `None` where that is not possible."""

_TAIL = r"(?:(?:also|then|now|currently),? +)?"
_JOINT = re.compile(
    r",?\s+(?P<with>with)\s+|\s+(?P<bare>(?=(?:living|based) in |from [A-Z])|who (?=is |has |lives |works ))"
    rf"|\s*(?P<sign>[,;:(]|\s[-–—]+)\s*(?:(?P<after>and|but|plus|while)\s+)?{_TAIL}"
    rf"|\s+(?P<word>and|but|plus|while|&)\s+{_TAIL}"
)
_WHERE = re.compile(r"where (?=(?:I|(?:the )?user) (?:work|am|is|have|has)s?\b)", re.IGNORECASE)
_OPENING = r"(?:(?:right now|now|currently|these days|nowadays|at the moment|today|recently),? )?"
_ADVERBS = r"(?:(?:also|now|currently|still|just|recently|always|usually|really|severely|highly|very) )*"
_EXPLICIT = re.compile(
    r"(?:I|we)(?:['’]\w+)? (?!and\b)\w|(?:the )?user (?!and\b)\w"
    r"|they (?:are|have|do|don['’]t|can|live|work)\b"
    r"|(?:my|the user['’]s|their|our) (?:[\w'’-]+ ){1,3}?(?:is|are|was|were|has|have|had|lives?|works?|says"
    r"|said|told|got|[a-z]{2,}ed)\b",
    re.IGNORECASE,
)
_NAME_IS = r"(?:my|the user['’]s) (?:full |first )?name(?: is|['’]s)"
_WHOLE = re.compile(
    rf"{_OPENING}(?:(?:I|we)['’]\w+|(?:I|we|they|(?:the )?user) (?!and\b)[\w'’]+|(?:the )?user and others \w+"
    rf"|{_NAME_IS}\b|my (?:[\w'’-]+ ){{1,3}}and I \w"
    r"|(?:my|the user['’]s|their|our) (?:[\w'’-]+ ){1,3}(?:is|are|was|were|has|have|[a-z]{2,}s)\b)",
    re.IGNORECASE,
)
_ABOUT_USER = re.compile(
    rf"{_OPENING}(?:I\b|we\b|(?:the )?user (?!and (?!others\b))|{_NAME_IS}\b)", re.IGNORECASE
)
_IS = re.compile(
    rf"{_OPENING}(?:I['’]m|I am|we['’]re|we are|(?:the )?user is|(?:the )?user and others are|{_NAME_IS})\b",
    re.IGNORECASE,
)
# A bare verb may still depend on one of these: "I want to live in Rome and work as a cook".
_GOVERNS = re.compile(
    r"\b(?:(?:want|wants|hope|like|love|plan|going|need|have|used|try|trying|decided|able|prefer|wish) to"
    r"|will|would|can|could|should|might|may|must|let|help|gonna|wanna|do|did)"
    r"\b|n['’]t\b|['’](?:ll|d)\b|\bnever\b"
)
_SUBORDINATE = re.compile(
    r"\b(?:when|if|because|since|after|before|although|though|whenever|until|unless|as)"
    r" (?:I|my|we|the user)\b",
    re.IGNORECASE,
)
_LIVES = re.compile(r"\blive[sd]? in |\bliving in ", re.IGNORECASE)
# These name nobody but the user, so the rest is about the user too.
_IS_SOMEBODY = re.compile(
    rf"(?:I['’]m|\bam|\bis) (?:an? (?:[\w-]+ ){{0,3}}{OCCUPATION}"
    r"|(?:(?:living|based) in|from) [A-Z][\w ]*)[.]$"
)
_OF_FAMILY = re.compile(r"(?:my|our|their|an?|two|three|four|five|\d+) [^\W\d_]", re.IGNORECASE)
_PREDICATE = re.compile(
    rf"{_ADVERBS}(?:allergic|intolerant|diabetic|asthmatic|epileptic|vegan|vegetarian|pescatarian|pregnant"
    rf"|single"
    r"|married|divorced|engaged|widowed|co?eliac|lactose|deaf|blind|autistic|disabled|based in|living in"
    r"|working (?:as|at|for)|from (?=[A-Z])|\d{1,3}(?: years old)?(?=[,.;!)]| and\b| with\b|$)"
    rf"|an? (?:[\w-]+ ){{0,3}}{OCCUPATION}\b)"
)
# These point to the clause before.
_POINTS_BACK = re.compile(
    r"(?:[\w'’]+ ){1,4}?(?:it|there|that|them|him|her|this|these|those|here|so|too|both)\b"
    r"(?! (?:is|are|I)\b)",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"(?:an?|two|three|four|five|\d+) (?:\w+ )?(?:kids?|child(?:ren)?|sons?|daughters?|cats?|dogs?)\b",
    re.IGNORECASE,
)
_LONG_ENOUGH = re.compile(r"[^\s,;.]+ [^\s,;.]+")
_PLAIN = re.compile(
    r"(?:I(?: am|['’]m)|the user is) (?:an? |\d)|(?:I have|the user has) (?:an?|two|three) "
    r"|(?:I|the user) (?:works? (?:as|at|for)|lives? in)\b"
    r"|(?:we|the user and others)(?:['’]re| are| have|['’]ve)? (?:on|an?|got an?|(?:also |still )?(?:use"
    r"|live in)) ",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“”「」]")
_THEY = re.compile(r"they (are|have|don['’]t|do|can|live|work)\b", re.IGNORECASE)
_AGREEING = {"are": "is", "have": "has", "do": "does", "don't": "doesn't", "live": "lives", "work": "works"}
_LAST_SIGN = re.compile(r"[\s,;:(–—-]+$")


@dataclass(frozen=True)
class _Person:
    """How a clause that leaves out its subject continues."""

    subject: str
    be: str
    have: str
    live: str
    verbs: re.Pattern[str]

    def goes_on(self, piece: str, rest: str) -> str | None:
        """The words that `rest` leaves out after a clause about the user; `None` if it is no clause."""
        if (
            self.verbs.match(rest)
            and _LONG_ENOUGH.match(rest)
            and not (self.be == "am" and _GOVERNS.search(piece))
        ):
            return f"{self.subject} "
        if _IS.match(piece) and _PREDICATE.match(rest):
            return f"{self.subject} {self.be} "
        return None


def _verbs(forms: str) -> re.Pattern[str]:
    shared = r"can(?:['’]t|not)?|was|had|got|moved|started|grew up|used to|no longer|never|suffered|will"
    return re.compile(rf"{_ADVERBS}(?:{'|'.join(forms.split())}|{shared}) ", re.IGNORECASE)


_FIRST = _Person(
    "I",
    "am",
    "have",
    "live",
    _verbs(
        "am have live work study teach own speak suffer need eat drink smoke love like enjoy hate prefer play"
        " want drive take use carry wear react avoid manage commute travel cook don['’]t do\\ not"
    ),
)
_THIRD = _Person(
    "The user",
    "is",
    "has",
    "lives",
    _verbs(
        "is has lives works studies teaches owns speaks suffers needs eats drinks smokes loves likes enjoys"
        " hates prefers plays wants drives takes uses carries wears reacts avoids manages commutes travels"
        " cooks doesn['’]t does\\ not"
    ),
)
_FIRST_OF_SEVERAL = replace(_FIRST, subject="We", be="are")
_THIRD_OF_SEVERAL = replace(_FIRST, subject="The user and others", be="are")
_SAYS_WE = re.compile(rf"{_OPENING}we\b", re.IGNORECASE)
_AND_OTHERS = re.compile(r"(?:the )?user and others\b", re.IGNORECASE)
_HAS = re.compile(
    r"(?P<subject>(?:I|we|(?:the )?user(?: and others)?)(?:['’]ve)? (?:(?:also|now|still) )?(?:have got"
    r"|has got|have|has|got|own|owns|adopted|bought)) (?:an?|one|two|three|four|five|\d+) [^,]+$",
    re.IGNORECASE,
)
_ANOTHER = re.compile(r"(?:an?|two|three|four|five|\d+) (?:[\w-]+ ){0,4}[\w-]+", re.IGNORECASE)
_SAYS_I = re.compile(r"\b(?:I|my|we|our)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Piece:
    """A part of a sentence that could be a sentence of its own."""

    opening: str
    """Words that it leaves out in the sentence."""
    start: int
    end: int

    def within(self, sentence: str) -> str:
        text = self.opening + sentence[self.start : self.end]
        text = _THEY.sub(_agreeing, text) if text[:4].lower() == "they" else text
        if text.count(")") > text.count("("):
            text = text.replace(")", "", 1)
        text = _LAST_SIGN.sub("", text)
        return text[:1].upper() + text[1:] + ("" if text[-1:] in ".!?…" else ".")


_NEXT_PART = re.compile(
    r"(?:[,;]|\s[-–—]+)\s+(?:(?:and|but|so|also|because|plus|or)\s+)*(?=(?:(?:can|could|will|would|should"
    r"|is|are|does|do|did) (?:you|it|i|we|that|this|there|the|they|\w+ (?:run|work|help))|how|which|why"
    r"|nobody|went|[\w-]+ (?:is|are) my|(?:mon|tues|wednes|thurs|fri|satur|sun)days|I|I['’]\w+|we"
    r"|we['’]\w+|my|our|please|pls|never|always|only"
    r"|don['’]t|do not|no (?!longer|matter|idea)|nothing|(?:her|his|its) name|she|he|she['’]s|he['’]s|it"
    r"|it['’]s|they|they['’]re|there|that|that['’]s|what|any|use|just)\b)"
    r"|\s+(?:and|but|so|because)\s+(?=(?:I|I['’]\w+|we|we['’]\w+|please|don['’]t|(?:could|can|would) you)\b"
    r"|(?:my|our) (?:[\w'’-]+ ){1,3}(?:is|are|was|were|has|have|had|lives?|works?|wants?|hates?|loves?)\b)",
    re.IGNORECASE,
)
_NEEDS_REST = re.compile(
    r"^(?:when|if|because|since|after|before|although|though|whenever|until|unless|as|while|once"
    r"|even though|for|with|in|on|at|last|yesterday"
    r"|today|tomorrow|this|next|now|back|the day|every|by|during)\b[^,;]*$",
    re.IGNORECASE,
)
_ONLY_NAMES = re.compile(r"^(?:(?:my|our) (?:[\w'’-]+ ?){1,2}|[A-Z][\w'’-]+)$", re.IGNORECASE)
_SPLIT_BEFORE = 20  # parts of a sentence


def parts_of(sentence: str) -> list[str]:
    """The parts of a sentence that could be sentences of their own.

    A part that points back to the one before, as in "I moved to Berlin and I love it", stays with it.
    """
    if _QUOTED.search(sentence):
        return [sentence]
    parts: list[str] = []
    start = 0
    for joint in _NEXT_PART.finditer(sentence):
        part, rest = sentence[start : joint.start()], sentence[joint.end() :]
        is_bare = "," not in joint.group() and ";" not in joint.group()
        if len(parts) >= _SPLIT_BEFORE or _NEEDS_REST.match(part) or not _LONG_ENOUGH.match(part):
            continue
        if is_bare and _ONLY_NAMES.match(part):
            continue
        if is_bare and not rest.lower().startswith(("my ", "our ")) and _POINTS_BACK.match(rest):
            continue
        parts.append(_ended(part))
        start = joint.end()
    return [each for part in (*parts, _ended(sentence[start:])) for each in _of_somebody(part)]


_SOMEBODY = re.compile(
    r"^(?:My|Our) (?:[\w'’-]+ ){1,3}?(?=(?:is|isn['’]t|has|loves|hates|likes|works|lives|turns|was"
    r"|can['’]t|doesn['’]t)\b)",
    re.IGNORECASE,
)
_AND_VERB = re.compile(
    r",? and (?=(?:is|isn['’]t|has|doesn['’]t|does not|loves|hates|likes|dislikes|works|lives|can['’]t"
    r"|wants|speaks|plays|studies|prefers|needs) )"
    r"|,? and (?=mad about |allergic to |afraid of )"
)


def _of_somebody(part: str) -> Iterator[str]:
    """The clauses about somebody close to the user, each with its subject: "My mum sings and hates tea"."""
    subject = _SOMEBODY.match(part)
    joints = list(_AND_VERB.finditer(part))[:3] if subject else []
    start, opening = 0, ""
    for joint in joints:
        yield opening + part[start : joint.start()]
        start = joint.end()
        opening = subject.group() if subject else ""
        opening += "is " if part.startswith(("mad ", "allergic ", "afraid "), start) else ""
    yield opening + part[start:]


def _ended(part: str) -> str:
    part = part.strip(" ,;")
    return part[:1].upper() + part[1:]


@remember_list
def clauses_of(sentence: str, rewrite: Rewrite) -> list[str]:
    """The clauses of a sentence about the user if one of them states a fact by itself.

    Any other sentence is returned whole.
    """
    if _QUOTED.search(sentence) or not _WHOLE.match(sentence):
        return [sentence]
    pieces = _joined(sentence, list(_pieces(sentence)), rewrite)
    if len(pieces) == 1:
        return [sentence]
    clauses = [piece.within(sentence) for piece in pieces]
    return clauses if any(_stands(clause, rewrite) for clause in clauses) else [sentence]


def _stands(clause: str, rewrite: Rewrite) -> bool:
    return concerns_health(clause) or bool(_PLAIN.match(clause)) or slot_of(rewrite(clause) or "") is not None


def _pieces(sentence: str) -> Iterator[_Piece]:
    person = _person_of(sentence)
    last = _Piece("", 0, len(sentence))
    for joint in _JOINT.finditer(sentence):
        piece = _Piece(last.opening, last.start, joint.start())
        start = joint.end()
        if where := _WHERE.match(sentence, start):
            start = where.end()
        opening = _opening(person, piece.within(sentence), joint, sentence[start:])
        if opening is not None:
            yield piece
            last = _Piece(opening, start, len(sentence))
    yield last


def _person_of(sentence: str) -> _Person:
    if _SAYS_WE.match(sentence):
        return _FIRST_OF_SEVERAL
    if _SAYS_I.search(sentence):
        return _FIRST
    return _THIRD_OF_SEVERAL if _AND_OTHERS.match(sentence) else _THIRD


def _opening(person: _Person, piece: str, joint: re.Match[str], rest: str) -> str | None:
    """The words that the clause after a joint leaves out; `None` if the sentence is not split there."""
    if joint["with"]:
        return _opening_with(person, piece, rest)
    is_bare_sign = joint["sign"] in (",", ":") and not joint["after"]
    if is_bare_sign and _SUBORDINATE.search(piece):
        return None
    if not _WHOLE.match(piece):
        return None
    if joint["bare"] is not None:
        return _opening_bare(person, piece, rest)
    opening = "" if _EXPLICIT.match(rest) else None
    owned = _HAS.match(piece.rstrip(".")) if joint["word"] and _ANOTHER.match(rest) else None
    if owned:
        return f"{owned['subject']} "
    if opening is None and _ABOUT_USER.match(piece):
        opening = person.goes_on(piece, rest)
    return None if opening is None or _POINTS_BACK.match(opening + rest) else opening


def _opening_with(person: _Person, piece: str, rest: str) -> str | None:
    """As in "I live in Lisbon with my wife" and "I'm a nurse with diabetes"."""
    named = re.split(r"[,;.]| and | but ", rest, maxsplit=1)[0]
    if not _ABOUT_USER.match(piece):
        return None
    if _LIVES.search(piece) and _OF_FAMILY.match(rest):
        return f"{person.subject} {person.live} with "
    if _IS.match(piece) and (_OWNED.match(rest) or concerns_health(named)):
        return f"{person.subject} {person.have} "
    return None


def _opening_bare(person: _Person, piece: str, rest: str) -> str | None:
    """As in "I'm a nurse from Lisbon" and "The user is a nurse who has diabetes"."""
    if not _ABOUT_USER.match(piece) or not _IS_SOMEBODY.search(piece):
        return None
    return f"{person.subject} " if person.verbs.match(rest) else f"{person.subject} {person.be} "


def _joined(sentence: str, pieces: list[_Piece], rewrite: Rewrite) -> list[_Piece]:
    """The pieces, with neighbours joined if both fill the same slot: "I'm a teacher and a writer"."""
    slots = [slot_of(rewrite(piece.within(sentence)) or "") for piece in pieces]
    joined = pieces[:1]
    for (before, slot), piece in zip(pairwise(slots), pieces[1:], strict=True):
        if before and slot and before.name == slot.name:
            joined[-1] = _Piece(joined[-1].opening, joined[-1].start, piece.end)
        else:
            joined.append(piece)
    return joined


def _agreeing(match: re.Match[str]) -> str:
    verb = match[1].lower().replace("’", "'")
    return f"The user {_AGREEING.get(verb, verb)}"


# --- facts of an entry ---

_CJK = re.compile("[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"(?<=[.!;])\s+(?=(?:The )?[Uu]ser(?:['’]s)?\b|They\b)|(?<=[。！；])(?=用户)")
_WHO = re.compile(r"^(?P<user>(?:The )?[Uu]ser), who (?P<one>[^,]+), (?P<other>.+)$")
_USER = re.compile(r"^user\b", re.IGNORECASE)
_VERB = re.compile(r"^(?:lives|works|is|has|moved|named|allergic|resides|goes by|was)\b", re.IGNORECASE)


@remember_list
def facts_of(text: str) -> list[str]:
    """The facts that a text in the third person states, in their order; the text itself if it is one fact."""
    facts = [fact for sentence in _SENTENCE.split(text) for fact in _of_sentence(sentence.strip()) if fact]
    return facts if len(facts) > 1 else [text]


def slot_in(text: str) -> Slot | None:
    """The slot that a fact fills, also if it leaves out "the" or "the user"; `None` if it fills none."""
    return slot_of(_named(text))


def _of_sentence(sentence: str) -> Iterator[str]:
    if _CJK.search(sentence):
        clauses = chinese_clauses_of(sentence, _add_chinese_user)
        yield from (f"{each.rstrip('。')}。" for each in clauses) if len(clauses) > 1 else [sentence]
    else:
        whole = _WHO.sub(r"\g<user> \g<one> and \g<other>", sentence)
        clauses = clauses_of(whole, _named)
        yield from clauses if len(clauses) > 1 else [sentence]


def _named(text: str) -> str:
    text = _USER.sub("The user", text)
    return f"The user {text[0].lower()}{text[1:]}" if _VERB.match(text) else text


def _add_chinese_user(clause: str) -> str:
    return f"用户{clause}" if lacks_subject(clause) else clause
