"""Loads the patterns: data files, one for each language, and the attributes that all of them share."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

from ..entry import ContentType

Language = Literal["en", "zh"]
Operation = Literal["set", "not", "end", "move"]

_MACRO = re.compile(r"%(\w+)%")
_IN_LOWER_CASE = frozenset(
    {"made_up", "play", "over", "unreal", "taint", "change", "parting", "relents", "work_above"}
)
_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True)
class Attribute:
    """What may be known of somebody, and how it is put into words."""

    name: str
    kind: ContentType
    is_single: bool
    """Whether it has one value at a time."""
    is_keyed: bool
    """Whether it has one value for each relation, as a favourite dish and a favourite book."""
    is_dated: bool
    """Whether its text says as of when it holds."""
    is_ended_alone: bool
    """Whether its end is worth an entry even if nothing was known."""
    has_since: bool
    """Whether the date of a statement is that since when it holds."""
    texts: Mapping[Language, Mapping[str, str]]


@dataclass(frozen=True)
class Rule:
    """A pattern of what a clause may state."""

    attribute: str
    operation: Operation
    source: str
    hint: str
    """The hint that a sentence has if the pattern can match. Most are never needed, and never compiled."""
    value: str
    """How the value is read: `list`, `number`, `day`, or as it stands."""
    value_text: str
    relation_text: str
    noun: str
    """The words for a plan, with the value in place of `{}`."""
    future: str
    """The words for the plan that it is if its date is ahead."""
    form: str
    needs_date: bool
    is_dated: bool
    is_timeless: bool
    """Whether a date in the clause is not that of the value."""
    is_anywhere: bool
    is_lowercase: bool
    unless: re.Pattern[str]
    unless_match: re.Pattern[str]
    unless_after: re.Pattern[str]
    requires: re.Pattern[str] | None

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first needed."""
        return re.compile(self.source, re.IGNORECASE)


@dataclass(frozen=True)
class Patterns:
    """The patterns of a language."""

    language: Language
    rules: tuple[Rule, ...]
    hints: Mapping[str, re.Pattern[str]]
    setting: Mapping[str, re.Pattern[str]]
    instructions: Mapping[str, re.Pattern[str]]
    marker: re.Pattern[str]
    within: re.Pattern[str]
    """Where a correction begins within a sentence."""
    taken_back: re.Pattern[str]
    """What takes the statement before it back for certain."""
    corrections: tuple[re.Pattern[str], ...]
    topics: Mapping[str, re.Pattern[str]]
    """The changes of attributes, by which a value becomes doubtful if a sentence is not understood."""
    wish_topics: Mapping[str, re.Pattern[str]]
    """What instructions may be about: a later one takes the place of an earlier one about the same."""
    words: Mapping[str, frozenset[str]]
    canonical: Mapping[str, str]
    """The plain word for a relation that has several."""


@cache
def attributes() -> Mapping[str, Attribute]:
    """All attributes, by their names."""
    return {name: _attribute(name, given) for name, given in load("attributes").items()}


@cache
def patterns_of(language: Language) -> Patterns:
    """The patterns of a language. Compiling them takes a moment, so it is done when first needed."""
    given = load(language)
    expand = _Macros(given)
    hints = {name: re.compile(expand.expand(hint).lower()) for name, hint in given.get("hints", {}).items()}
    rules = [
        _rule(each, expand.expand(pattern), _hint_of(each, hints), expand)
        for each in given["rules"]
        for pattern in each["patterns"]
    ]
    changes_first = sorted(rules, key=lambda rule: rule.operation == "set")
    texts = (name for name in given["instructions"] if name not in ("examples", "misses"))
    return Patterns(
        language,
        tuple(changes_first),
        hints,
        {name: _setting(name, expand.expand(pattern)) for name, pattern in given["setting"].items()},
        {name: expand.compile(given["instructions"][name]) for name in texts},
        expand.compile(given["correction"]["marker"]),
        expand.compile(given["correction"]["within"]),
        expand.compile(given["correction"]["strict"]),
        tuple(expand.compile(pattern) for pattern in given["correction"]["patterns"]),
        {name: expand.compile(pattern) for name, pattern in given["topics"].items()},
        {name: expand.compile(pattern) for name, pattern in given["topics_of_instructions"].items()},
        {"not_a_name": frozenset(), **{name: frozenset(words) for name, words in given["words"].items()}},
        given["canonical"],
    )


def _setting(name: str, pattern: str) -> re.Pattern[str]:
    """A pattern of the setting. Those for text in lower case are much faster without the flag."""
    return re.compile(pattern.lower()) if name in _IN_LOWER_CASE else re.compile(pattern, re.IGNORECASE)


def load(name: str) -> dict[str, Any]:
    """A data file as it is written."""
    return tomllib.loads(files(__package__).joinpath("patterns", f"{name}.toml").read_text(encoding="utf-8"))


def _attribute(name: str, given: Mapping[str, Any]) -> Attribute:
    return Attribute(
        name,
        given.get("kind", "profile"),
        given.get("single", False),
        given.get("keyed", False),
        given.get("dated", False),
        given.get("alone", False),
        given.get("since", False),
        {"en": given["en"], "zh": given["zh"]},
    )


def _hint_of(given: Mapping[str, Any], hints: Mapping[str, Any]) -> str:
    name: str = given.get("hint", given["attribute"])
    return name if name in hints else ""


def _rule(given: Mapping[str, Any], source: str, hint: str, expand: "_Macros") -> Rule:
    def optional(name: str) -> re.Pattern[str]:
        return expand.compile(given[name]) if name in given else _NEVER

    return Rule(
        given["attribute"],
        given.get("op", "set"),
        source,
        hint,
        given.get("value", ""),
        given.get("value_text", ""),
        given.get("relation_text", ""),
        given.get("noun", "{}"),
        given.get("future", ""),
        given.get("form", ""),
        given.get("date", False),
        given.get("dated", False),
        given.get("timeless", False),
        given.get("anywhere", False),
        given.get("lowercase", False),
        optional("unless"),
        optional("unless_match"),
        optional("unless_after"),
        expand.compile(given["requires"]) if "requires" in given else None,
    )


class _Macros:
    """Replaces `%name%` by the words or the pattern of that name."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        words = {name: _any_of(each) for name, each in given["words"].items()}
        self._known: dict[str, str] = {**words, **given["macros"]}

    def compile(self, pattern: str) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.expand(pattern), re.IGNORECASE)

    def expand(self, pattern: str) -> str:
        """The pattern without macros."""
        while _MACRO.search(pattern):
            pattern = _MACRO.sub(lambda match: self._known[match[1]], pattern)
        return pattern


def _any_of(words: list[str]) -> str:
    """The words as alternatives, the longest first. A Latin one ends where the word ends."""
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    ending = r"(?!\w)" if words and words[0].isascii() else ""
    return f"(?:{'|'.join(map(re.escape, longest_first))}){ending}"
