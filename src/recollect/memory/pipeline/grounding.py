"""Grounding: whether the user said what a candidate states. Pure functions, the same for every extractor.

A candidate with a quote is kept only if the user said the quoted words and it is a statement of its own. One
without a quote is kept unless it cites only what others said: its extractor answers for its words. Everything
else is dropped, and counted by its reason: one of `REASONS`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..conversation import Message
from ..entry import Entry
from ..texts.numbers import numbers_in
from ..texts.synonyms import LIGHT, MONTHS
from ..texts.terms import terms
from .stages import MOST_EVIDENCE, Candidate, Excerpt

REASONS: Mapping[str, str] = {
    "not_said_by_the_user": "only the assistant, a tool or another participant said it",
    "quote_not_found": "the quoted words are in none of the messages",
    "about_assistant": "it is about the assistant",
    "question": "it is a question, or rests on one",
    "about_others": "it does not say what it has to do with the user",
    "too_long": "it is longer than a sentence or two",
    "code": "it is code",
    "copied": "it is a message, or a part of one, word for word",
    "other_language": "it is in another script than the words it rests on",
    "unlike_quote": "it shares no word with the message it rests on",
    "name_not_said": "it has a name or a number that nobody mentioned",
    "no_ground": "an inference that rests on fewer than two entries",
    "unsure": "an inference that the model itself has little confidence in",
    "too_many": "it is one of more than ten inferences, or of more than ten from the same words",
}
"""The reasons to drop a candidate, with their descriptions."""

_LONGEST_MESSAGE = 20_000  # characters of a message that are compared
_LONGEST_TEXT = 400
_LONGEST_MENTIONED = 100_000  # characters that are searched for numbers in words
_MOST_SENTENCES = 3
_MOST_PER_QUOTE = 10  # a model in a loop goes on with the same words
_FEWEST_COPIED_WORDS = 8
_LEAST_COPIED_WEIGHT = 40  # of a text without spaces: 20 Chinese characters
_SUBJECT = re.compile(r"(?:the user|用户)(?: (?:said|says)(?: that)?:?|[说：:]{1,2})?", re.IGNORECASE)
_ABOUT_ASSISTANT = re.compile(
    r"(?:the |this |an )?(?:AI |AI-)?(?:assistant|chatbot|language model)(?:'s|’s)? "
    r"(?:is|was|are|has|had|can|cannot|could|will|would|should|does|did|said|says|told|tells|asked|asks|offer|"
    r"suggest|recommend|recall|remember|explain|provide|help|respond|answer|repl|confirm|mention|name)"
    r"|(?:AI)?(?:助手|助理)(?:是|会|能|可以|说|建议|推荐|记得|回答|表示|提供|帮)",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:I|I['’](?:m|ve|d|ll)|my|me|mine|we|we['’](?:re|ve)|our)\b|[我咱]", re.IGNORECASE
)
_CODE = re.compile(
    r"```|^\s*(?:from [\w.]+ import |import [\w.{]+|(?:async )?def \w+\(|class \w+[:({]|#include\b|#!/"
    r"|(?:const|let|var|public|private|static) \w+|SELECT .{1,80} FROM |</?\w+[^>]*>|[$>] \w+ -)"
    r"|[;{]\s*$|\w\([^()]*\)\s*(?:[:{;]|->)|=>|[!=]==?\s|::\w|\w\.\w+\(|^[\w.]+\(.*\)$|\b\w+ = \w+[(\[{.\"']",
    re.MULTILINE,
)
_QUESTION = re.compile(r"[?？][\s\"'”’)]*$")
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s+[A-Z])|[。！？](?=.)")
_ELLIPSIS = re.compile(r"\s*(?:\.{3}|…)\s*")
_MARKS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-"})
_EDGES = " \t\"'.,;:!?。，；：！？「」"
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][^\W\d_]{2,}|(?<![\d,-])(?:\d{1,3}(?:,\d{3})+|\d{3,})(?![\d-])")
_NOT_A_NAME = re.compile(
    rf"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|user|{'|'.join(MONTHS)}|(?:19|20)\d\d"
)
_SAME_START = 4  # letters: "Portuguese" is said by "Portugal"
_TRUSTED_START = 3  # letters: "Polish" is said by "Poland", if a large model says so
# A small model confuses who is who in what it writes of others alone.
_OF_USER = re.compile(
    r"user|usuari|utilis|utiliz|nutzer|utente|gebruik|\b(?:I|I'm|my|we|our)\b", re.IGNORECASE
)
_GENDER = re.compile(r"\b(?:male|female|man|woman)\b", re.IGNORECASE)  # small models make one up
_IN_ENGLISH = re.compile(r"\bthe\b", re.IGNORECASE)
_NAME_OF_SEVERAL_WORDS = re.compile(r"[A-Z]\w*(?:[ -](?:of |the |and )?[A-Z]\w*)+")
_HAN = re.compile("[\u3400-\u9fff]")
_WORD_OF_PROSE = re.compile(r"(?<![\w.(_])[^\W\d_]{2,}(?![\w.(=_])|[\u3400-\u9fff]")
_FEWEST_OF_PROSE = 4  # words of a sentence that names code
_FIGURES = re.compile(r"\d+(?:[.,:'’m]\d+)*")


@dataclass(frozen=True)
class Grounded:
    """The candidates that rest on what the user said, and how many were dropped, by their reasons."""

    candidates: tuple[Candidate, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


def ground(candidates: Iterable[Candidate], excerpt: Excerpt) -> Grounded:
    """Keep the candidates that the user's messages support. The evidence of each begins with such a message.

    A quote that is in another message of the user than the cited one is evidence of that message.
    """
    sources = _Sources(excerpt)
    kept: list[Candidate] = []
    dropped: Counter[str] = Counter()
    by_quote: Counter[str] = Counter()
    for candidate in candidates:
        checked = sources.check(candidate)
        if not isinstance(checked, str) and candidate.quote:
            by_quote[candidate.quote] += 1
            checked = "too_many" if by_quote[candidate.quote] > _MOST_PER_QUOTE else checked
        if isinstance(checked, str):
            dropped[checked] += 1
        else:
            kept.append(checked)
    return Grounded(tuple(kept), dict(dropped))


def objection_to_inference(text: str, grounds: Sequence[Entry]) -> str | None:
    """The reason to drop what a model infers from entries; `None` if there is none."""
    if _ABOUT_ASSISTANT.match(text):
        return "about_assistant"
    return _Sources(Excerpt("", "", (), known=tuple(grounds))).invention_in(text)


def is_code(text: str) -> bool:
    """Whether a text is code, or has a line of it."""
    return _CODE.search(text) is not None


def normalize(text: str) -> str:
    """A text for comparing: texts that differ only in case, spaces and typographic marks become equal."""
    plain = unicodedata.normalize("NFKC", text[:_LONGEST_MESSAGE]).translate(_MARKS).casefold()
    return " ".join(plain.split())


def significant_terms(text: str) -> frozenset[str]:
    """The terms of a text without those that nearly every text has."""
    return frozenset(terms(text[:_LONGEST_MESSAGE])) - LIGHT


class _Sources:
    """The messages of an excerpt, prepared for many comparisons."""

    def __init__(self, excerpt: Excerpt) -> None:
        self._excerpt = excerpt
        self._by_id = {message.message_id: message for message in excerpt.messages}

    @cached_property
    def _normalized(self) -> dict[str, str]:
        return {each.message_id: normalize(_ends_of(each.content)) for each in self._excerpt.messages}

    @cached_property
    def _plain(self) -> dict[str, str]:
        """The same without marks, for quotes that leave them out."""
        return {message_id: _unmarked(said) for message_id, said in self._normalized.items()}

    @cached_property
    def _mentioned(self) -> str:
        """Everything that a candidate may take a name from: messages, earlier ones, and known entries."""
        before = (normalize(message.content) for message in self._excerpt.before)
        known = (normalize(entry.text) for entry in self._excerpt.known)
        return "\n".join([*self._normalized.values(), *before, *known])

    def check(self, candidate: Candidate) -> Candidate | str:
        """The candidate, with the message of the user as its first evidence, or the reason to drop it."""
        cited = [self._by_id[each] for each in candidate.evidence if each in self._by_id]
        if not candidate.quote:
            is_said_by_others = cited and not any(map(self._excerpt.is_users, cited))
            return "not_said_by_the_user" if is_said_by_others else candidate
        source = self._source_of(candidate.quote, cited, candidate.is_trusted)
        if isinstance(source, str):
            return source
        further = [self._source_of(quote, cited, candidate.is_trusted) for quote in candidate.quotes]
        missing = [each for each in further if isinstance(each, str)]
        if missing:
            return missing[0]
        cited = cited if source in cited else []  # the model cites the wrong message
        cited = [*(each for each in further if isinstance(each, Message)), *cited]
        of_user = [each for each in cited if self._excerpt.is_users(each)]
        others = [each for each in cited if not self._excerpt.is_users(each)]
        evidence = list(dict.fromkeys(each.message_id for each in (source, *of_user, *others)))
        objection = self._objection_to(candidate, [source, *of_user])
        return objection or replace(candidate, evidence=tuple(evidence[:MOST_EVIDENCE]))

    def _source_of(self, quote: str, cited: Sequence[Message], is_trusted: bool) -> Message | str:
        """The message of the user with these words: a cited one if possible.

        A trusted model may quote a short answer, if it cites the message, and without its marks.
        """
        parts = [part for part in map(_trimmed, _ELLIPSIS.split(normalize(quote))) if part]
        is_short = sum(map(_weight, parts)) < 4  # "I" is in every message
        if not parts or (is_short and not is_trusted):
            return "quote_not_found"
        if is_short:
            found = [each for each in cited if _answers(self._normalized[each.message_id], parts[0])]
        else:
            order = [*cited, *(each for each in self._excerpt.messages if each not in cited)]
            found = [each for each in order if _has_in_order(self._normalized[each.message_id], parts)]
        if not found and is_trusted and not is_short:
            plain = list(filter(None, map(_unmarked, parts)))
            found = [each for each in order if plain and _has_in_order(self._plain[each.message_id], plain)]
        of_user = [each for each in found if self._excerpt.is_users(each)]
        if of_user:
            return of_user[0]
        return "not_said_by_the_user" if found else "quote_not_found"

    def _objection_to(self, candidate: Candidate, evidence: Sequence[Message]) -> str | None:
        """The reason to drop a candidate because of its text; `None` if there is none."""
        text = candidate.text
        is_wish = candidate.is_trusted and candidate.content_type == "instruction"
        if _ABOUT_ASSISTANT.match(text) and not is_wish:
            return "about_assistant"
        if candidate.is_trusted:
            return self.invention_in(text)
        if _QUESTION.search(text) or self._is_asked(candidate.quote, evidence[0]):
            return "question"
        if len(text) > _LONGEST_TEXT or len(_SENTENCE_ENDS.findall(text)) >= _MOST_SENTENCES:
            return "too_long"
        if is_code(text):
            return "code"
        if self._is_copied(text):
            return "copied"
        if text.isascii() and not _OF_USER.search(text):
            return "about_others"
        return self._unlike(candidate, evidence)

    def invention_in(self, text: str) -> str | None:
        """The reason to drop what a trusted model wrote: it is long, code, or names what nobody mentioned."""
        if len(text) > _LONGEST_TEXT:
            return "too_long"
        if is_code(text) and len(_WORD_OF_PROSE.findall(text)) < _FEWEST_OF_PROSE:
            return "code"
        return None if all(map(self._is_known_to_trusted, self._names_to_check(text))) else "name_not_said"

    def _names_to_check(self, text: str) -> list[str]:
        """The names and numbers of what a trusted model wrote, without those that it wrote out ("NHS").

        It is taken at its word where not only names have capital letters, and where numbers have other words.
        """
        if not _IN_ENGLISH.search(text):
            return list(filter(str.isdigit, _names_in(text))) if _HAN.search(text) else []
        for name in _NAME_OF_SEVERAL_WORDS.findall(text):
            initials = "".join(re.findall(r"\b[A-Z]", name)).casefold()
            text = text.replace(name, "") if f" {initials} " in self._words else text
        return _names_in(text)

    def _is_known_to_trusted(self, name: str) -> bool:
        """Whether a name or a number was mentioned, also in other units or in another form."""
        if self._is_mentioned(name):
            return True
        if name.isdigit():
            return name.strip("0") in self._figures
        return f" {_unaccented(name)[:_TRUSTED_START]}" in self._words

    @cached_property
    def _words(self) -> str:
        """The words that were mentioned, with a space around each."""
        words = re.findall(r"[^\W_]+", _unaccented(self._mentioned))
        return f" {' '.join(words)} "

    @cached_property
    def _figures(self) -> frozenset[str]:
        """The digits that were mentioned, without zeros at their ends: 1.82 m are 182 cm."""
        found = _FIGURES.findall(self._mentioned)
        spoken = (f"{number:.6f}" for number in self._numbers)
        return frozenset(re.sub(r"\D", "", each).strip("0") for each in (*found, *spoken))

    def _is_asked(self, quote: str, source: Message) -> bool:
        """Whether the quoted words are a question, also if the quote ends before its mark."""
        if _QUESTION.search(quote):
            return True
        _, _, rest = self._normalized[source.message_id].partition(_trimmed(normalize(quote)))
        return rest[:1] == "?"

    def _is_copied(self, text: str) -> bool:
        """Whether a text is a whole message or a long part of one, in the words of who said it.

        After "the user", only a copy from the beginning of a sentence counts: "I" may have stood before it.
        """
        subject = _SUBJECT.match(text)
        said = _trimmed(normalize(text[subject.end() :] if subject else text))
        if not subject and any(said == _trimmed(each) for each in self._normalized.values()):
            return True
        is_long = len(said.split()) >= _FEWEST_COPIED_WORDS or _weight(said) >= _LEAST_COPIED_WEIGHT
        if not said or not (is_long or _FIRST_PERSON.search(text)):
            return False
        return any(
            _begins_sentence(each, place) if subject else True
            for each in self._normalized.values()
            if (place := each.find(said)) >= 0
        )

    def _unlike(self, candidate: Candidate, evidence: Sequence[Message]) -> str | None:
        """The reason why the quote of a model does not support its text."""
        said = " ".join([candidate.quote, *(message.content[:_LONGEST_MESSAGE] for message in evidence)])
        if _is_in_other_script(candidate.text, candidate.quote):
            return "other_language"
        if not significant_terms(candidate.text) & significant_terms(said):
            return "unlike_quote"
        words = [*_names_in(candidate.text), *map(str.casefold, _GENDER.findall(candidate.text))]
        return None if all(map(self._is_mentioned, words)) else "name_not_said"

    def _is_mentioned(self, name: str) -> bool:
        if name.isdigit():
            return name in self._mentioned or float(name) in self._numbers
        return name[:_SAME_START] in self._mentioned

    @cached_property
    def _numbers(self) -> frozenset[float]:
        """The numbers that were mentioned, also in words."""
        return numbers_in(self._mentioned[:_LONGEST_MENTIONED])


def _ends_of(text: str) -> str:
    """The beginning and the end of a long message: these are what a model has seen."""
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: half - 1]}\n{text[-half:]}"


def _unmarked(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text))


def _answers(said: str, answer: str) -> bool:
    """Whether a message has a short answer as a word. In Chinese, it must begin with it."""
    return said.startswith(answer) if _HAN.search(answer) else f" {answer} " in f" {_unmarked(said)} "


def _trimmed(text: str) -> str:
    return text.strip(_EDGES)


def _weight(text: str) -> int:
    """The length of a text, in which a Chinese character counts as much as two letters."""
    return sum(1 if character.isascii() else 2 for character in text)


def _begins_sentence(text: str, place: int) -> bool:
    before = text[:place].rstrip()
    return not before or before[-1] in ".!?。;:\"'"


def _has_in_order(text: str, parts: Iterable[str]) -> bool:
    place = 0
    for part in parts:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def _unaccented(text: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))


def _names_in(text: str) -> list[str]:
    """The names and the numbers in a text, in lower case, without dates."""
    found = [each.casefold().replace(",", "") for each in _NAME.findall(text)]
    return [each for each in found if not _NOT_A_NAME.fullmatch(each)]


def _is_in_other_script(text: str, quote: str) -> bool:
    """Whether a text is in another script than its quote. Latin names may stand in any text."""
    written, said = _scripts_of(text), _scripts_of(quote)
    if written.keys() - said.keys() - {"LATIN"}:
        return True
    foreign = said.keys() - {"LATIN"}
    return bool(foreign) and not foreign & written.keys() and said["LATIN"] < said.total() / 2


def _scripts_of(text: str) -> Counter[str]:
    """The number of letters of each script, such as `LATIN` or `CJK`."""
    names = (unicodedata.name(each, "?").split()[0] for each in text[:1000] if each.isalpha())
    return Counter("CJK" if name in ("HIRAGANA", "KATAKANA") else name for name in names)
