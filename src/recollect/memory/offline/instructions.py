"""Standing instructions: how the user wants the assistant to behave from now on, not only this time."""

import re
from dataclasses import dataclass

from .rules import Patterns
from .sentences import HIDDEN

_LONGEST = 140
_CLAUSE = re.compile(r"(?:[^.;!?()]|(?<=\bDr)\.|(?<=\bMr)\.|(?<=\bMrs)\.|(?<=\bMs)\.|\.(?=\w))*")
_REASON = re.compile(
    r",? (?:because|otherwise|so that|cause)\b.*$"
    r"| and (?:don't|do not|never)\b.*$"
    r"|, (?!(?:not|never|even|especially|only|or|instead|with|in|unless|except|including|rather|and not"
    r"|please)\b).*$"
    r"| (?:it's|its|it is|they're|that's) .*$| - .*$| — .*$| – .*$",
    re.IGNORECASE,
)
_CALL_ME = re.compile(r"call me (?P<name>(?-i:[A-Z])[\w'-]{1,30})\s*(?:$|[.,!])", re.IGNORECASE)
_FINITE = re.compile(r"\b(?:is|are|was|were|has|have|will|can|those|these|that)\b", re.IGNORECASE)
_MORE = re.compile(r"(?:more|less|fewer|shorter|longer|simpler) ", re.IGNORECASE)
_NOT = re.compile(r"(?:don't|do not|never ever) (?:ever )?", re.IGNORECASE)
_AND_BEFORE = re.compile(r"\b(?:and|or|then|to),? $", re.IGNORECASE)
_JOINED = re.compile(r"(?:and|or|then) ", re.IGNORECASE)
_PLEASE = re.compile(
    r"(?:please|pls|plz|kindly|just please|also please|from now on|stop|no )\b", re.IGNORECASE
)
_SUBJECT = re.compile(r"(?:I|we|they|he|she|it|you|my|our|the|this|that|their|his|her)\b", re.IGNORECASE)
_STOP_IT = re.compile(r"^stop it with (?:the |all the )?", re.IGNORECASE)
_PROPER = re.compile(r"(?:British|American|Canadian|Australian|English|German|French|Spanish|Chinese)\b")
_COUNT = re.compile("^(?=[一二三四五六两几])")
_LEADING = re.compile(
    r"(?:from now on|in (?:the )?future|going forward|as a rule|generally),? ", re.IGNORECASE
)
_FOR = re.compile(r"for (?P<what>[a-z ]{3,20}?),? use (?P<how>[^,]+)(?P<rest>,.*)?$", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:,? (?:please|pls|plz|thanks|thank you|thx|ok|okay|haha|lol|though|btw))+[.! ]*$", re.IGNORECASE
)
_SELF = (
    (r"\bI'm\b", "they are"),
    (r"\bI've\b", "they have"),
    (r"\bI am\b", "they are"),
    (r"\bI was\b", "they were"),
    (r"\bI\b", "they"),
    (r"\bmyself\b", "themselves"),
    (r"\bmine\b", "theirs"),
    (r"\bmy\b", "their"),
    (r"\b(?:me|us)\b", "them"),
    (r"\bour\b", "their"),
    (r"\bwe\b", "they"),
    (r"\b(?:ur|u're)\b", "your"),
    (r"\bu\b", "you"),
    (r"\byou don't\b", "it doesn't"),
    (r"\byou're\b", "it is"),
    (r"\byou are\b", "it is"),
    (r"\byour\b", "its"),
    (r"\byourself\b", "itself"),
)
_YOU = re.compile(
    r"\b(?P<before>when|if|that|unless|what|how|because|before|after|until|whenever|everything|anything)"
    r" you (?P<verb>[a-z]+)",
    re.IGNORECASE,
)
_PRESENT = {
    "kept": "keep",
    "gave": "give",
    "wrote": "write",
    "spoke": "speak",
    "told": "tell",
    "made": "make",
    "left": "leave",
    "sent": "send",
    "did": "do",
    "went": "go",
    "were": "be",
    "was": "be",
    "said": "say",
    "stuck": "stick",
    "began": "begin",
    "let": "let",
    "put": "put",
}
_UNCLEAR = re.compile(
    r"(?!keep it|make it|say it|explain it|stop it with)\w+ (?:it|that|this|them|him|her|those|these)\b",
    re.IGNORECASE,
)
_MODAL = frozenset({"can", "could", "will", "would", "must", "should", "may", "might", "did", "had"})
_PRONOUNS = tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in _SELF)


@dataclass(frozen=True)
class Instruction:
    """What the user wants, as it stands after "wants", and where its words end in the sentence."""

    text: str
    end: int


def instruction_in(sentence: str, start: int, patterns: Patterns) -> Instruction | None:
    """The standing instruction that begins at a place of a sentence; `None` if there is none."""
    if patterns.language == "zh":
        return _chinese(sentence, start, patterns)
    clause = _CLAUSE.match(sentence, start)
    said = clause.group() if clause else ""
    if len(said) > _LONGEST:
        said = said.split(",")[0]
    if not 3 < len(said) <= _LONGEST or not said[0].isalpha() or _continues(sentence, start, patterns):
        return None
    polite = patterns.instructions["polite"].match(said)
    words = said[polite.end() if polite else 0 :]
    begins = said[: polite.end() if polite else 0]
    told = (
        _called(words)
        or _stated(said, patterns)
        or _for_something(said, patterns)
        or _wish(words, patterns)
        or _phrase(words, patterns)
        or _imperative(words, begins, patterns)
    )
    if told is None or HIDDEN in told[0]:
        return None
    text, used = told
    end = sentence.find(used, start) + len(used)
    return Instruction(text, max(end, start + 1))


def _continues(sentence: str, start: int, patterns: Patterns) -> bool:
    """Whether a clause goes on with the subject of the one before: "they tidy and always keep it clean"."""
    joined = _JOINED.match(sentence, start)
    place = joined.end() if joined else start
    if not (joined or _AND_BEFORE.search(sentence, 0, start)) or _PLEASE.match(sentence, place):
        return False
    order = patterns.instructions["order"]
    first = patterns.setting["opening"].match(sentence)
    return not (order.match(sentence) or order.match(sentence, first.end() if first else 0)) and bool(
        _SUBJECT.match(sentence, first.end() if first else 0)
    )


def _called(words: str) -> tuple[str, str] | None:
    match = _CALL_ME.match(words)
    return (f"to be called {match['name']}", match.group()) if match else None


def _stated(clause: str, patterns: Patterns) -> tuple[str, str] | None:
    """What the user wants in so many words, or under a condition."""
    if match := patterns.instructions["wishes"].match(clause):
        return _reworded(match["what"]), match.group()
    if match := patterns.instructions["rather"].match(clause):
        order = _in_present(match["what"], patterns)
        told = _imperative(f"don't {order}" if match["no"] else order, "", patterns)
        return (told[0], match.group()) if told else None
    if match := patterns.instructions["unwanted"].match(clause):
        return f"no {_reworded(match['what'])}", match.group()
    if match := patterns.instructions["called"].match(clause):
        return f"to be referred to as {match['what']}", match.group()
    if match := patterns.instructions["condition"].match(clause):
        order, when = _reworded(match["order"]), _reworded(match["when"])
        negated = _NOT.match(order)
        order = f"not to {order[negated.end() :]}" if negated else f"to {order}"
        return f"the assistant {order} {when}", match.group()
    return None


def _for_something(clause: str, patterns: Patterns) -> tuple[str, str] | None:
    """An instruction for a kind of work, such as "for tests use pytest, never unittest"."""
    match = _FOR.match(clause)
    if match is None or patterns.instructions["once"].search(clause):
        return None
    rest = match["rest"] or ""
    if rest and not re.match(r", (?:not|never)\b", rest):
        rest = ""
    used = clause[: match.end("how")] + rest
    return f"the assistant to use {match['how'].strip()} for {match['what']}{rest.rstrip(' .!')}", used


def _wish(words: str, patterns: Patterns) -> tuple[str, str] | None:
    """ "No emojis, please"; also one of several in a list."""
    match = patterns.instructions["no"].match(words)
    if match is None or patterns.instructions["once"].search(match.group()) or _FINITE.search(match["what"]):
        return None
    is_about_answers = patterns.instructions["about_answers"].match(match["what"])
    if not is_about_answers and (not match["mark"] or _MORE.match(words)):
        return None
    return _reworded(match["what"]), match.group()


def _phrase(words: str, patterns: Patterns) -> tuple[str, str] | None:
    """What the user wants without a verb: "tabs, not spaces"; or what is allowed from now on."""
    given = patterns.instructions
    if match := given["phrase"].match(words):
        words = re.sub(r"\s?: ", " ", match["what"])
        words = re.sub(r"^(\w+) never$", r"no \1", words)
        return _reworded(re.sub(r" (?:should|must) (always|never) ", r" to \1 ", words)), match.group()
    if match := given["allowed"].match(words):
        return f"{_reworded(match['what'])} to be allowed{match['but'] or ''}", match.group()
    if match := given["ended"].match(words):
        return f"the assistant not to {_reworded(match['what'])}", match.group()
    return None


def _in_present(words: str, patterns: Patterns) -> str:
    """An order that was given in the past tense, as in "if you kept things brief"."""
    first, _, rest = words.partition(" ")
    first = first.lower()
    forms = (
        (_PRESENT.get(first, first), first[:-1], first[:-2], first[:-3])
        if first in _PRESENT or (first.endswith("ed"))
        else (first,)
    )
    verb = next((form for form in forms if patterns.instructions["verb"].fullmatch(form)), first)
    return f"{verb} {rest}".strip()


def _imperative(words: str, begins: str, patterns: Patterns) -> tuple[str, str] | None:
    given = patterns.instructions
    leading = _LEADING.match(words)
    order = words[leading.end() :] if leading else words
    polite = given["polite"].match(order)
    order = order[polite.end() :] if polite else order
    is_standing = bool(leading or given["standing"].search(words) or given["standing"].search(begins))
    order = _without_reason(order)
    match = given["order"].match(order)
    if match is None or given["once"].search(order):
        return None
    how, rest = (match["how"] or "").lower().strip(), _TAIL.sub("", match["rest"]).rstrip(" .!,")
    if how.startswith(("don't", "do not", "dont", "no need")):
        if not (given["dont"].match(rest) or is_standing) or _UNCLEAR.match(rest) or " " not in rest:
            return None
        return f"the assistant not to {_reworded(rest)}", order
    if not (is_standing or how in ("always", "never") or given["style"].match(f"{how} {rest}".strip())):
        return None
    if len(rest.split()) < 2 or _UNCLEAR.match(rest):
        return None
    return f"the assistant to {how + ' ' if how else ''}{_reworded(rest)}", order


def _without_reason(order: str) -> str:
    """An order without the reason that follows it, or another sentence after a comma."""
    reason = _REASON.search(order, 6)
    return order[: reason.start()] if reason else order


def topic_of(text: str, patterns: Patterns) -> str:
    """What an instruction is about; empty if it stands for itself."""
    return next((name for name, topic in patterns.wish_topics.items() if topic.search(text)), "")


def _reworded(words: str) -> str:
    """The words in the third person."""
    for pattern, told in _PRONOUNS:
        words = pattern.sub(told, words)
    words = _YOU.sub(_it, words)
    words = re.sub(r"\byou\b", "it", words)
    words = _TAIL.sub("", words).strip(" ,.!")
    words = _STOP_IT.sub("stop using ", words)
    is_name = (words[:2].isalpha() and words[:2].isupper()) or _PROPER.match(words)
    return words if is_name else words[:1].lower() + words[1:]


def _it(match: re.Match[str]) -> str:
    verb, subject = match["verb"], f"{match['before']} it"
    if verb in _MODAL or verb.endswith(("ed", "s")):
        return f"{subject} {verb}"
    return f"{subject} {verb}es" if verb.endswith(("sh", "ch", "o")) else f"{subject} {verb}s"


def _chinese(sentence: str, start: int, patterns: Patterns) -> Instruction | None:
    clause = re.compile("[^。！!？?；;]*").match(sentence, start)
    if clause is None:
        return None
    words = clause.group()
    part = re.split("[，,]", words)[0]
    match = patterns.instructions["pattern"].match(part)
    if match is None or patterns.instructions["once"].search(part):
        return None
    return Instruction(
        _COUNT.sub("回答", re.sub("[我咱]们?", "用户", match["what"].replace("请", "").rstrip("。！!，, "))),
        start + len(part),
    )
