"""Rewrites an English sentence from the first person to the third: `I moved` becomes `The user moved`."""

import re

from ..texts.remembered import remember
from .sentences import around_speech, mask_numerals, unmask_numerals

_IRREGULAR_PAST = (
    "ate became began bent bought broke brought built came caught chose dealt did drank drew drove dug"
    " fell felt flew forgot fought found froze gave got grew had heard held hid hung kept knew laid led"
    " left lent lit lost made meant met paid ran rang rode rose said sang sank sat saw sent shook shot"
    " showed shut slept sold spent spoke spun stole stood stuck swam swept swore taught thought threw told"
    " took tore understood used was went were woke won wore wrote bet cut hit hurt let put quit read set"
    " spread split shed cost burst cast"
)
_MODAL = (
    "can could will would shall should must might may cannot can't couldn't won't wouldn't shouldn't"
    " mustn't didn't wasn't hadn't ought better would've could've should've used"
)
_BASE = (
    "agree appreciate ask attend bake believe belong bike bring build buy call care carry collect come"
    " cook crave create dance decide do draw dream drink drive eat enjoy exercise expect explore feel find"
    " focus follow garden get give go grow hang hate have hear help hike hope invest keep know lead learn"
    " like listen live look love make manage mean meet miss move need often offer organize own paint"
    " participate perform plan play practice prefer read relax remember rely ride run save see sell share"
    " sing skate sleep spend start stay struggle study suffer support surf swim take talk teach tend think"
    " train travel treat try understand use value visit volunteer wait wake walk want watch wear wish"
    " wonder work worry write"
)
PAST = frozenset(_IRREGULAR_PAST.split())
MODALS = frozenset(_MODAL.split())
BASE = frozenset(_BASE.split())
_ADVERBS = (
    "just also still really always never often usually sometimes definitely totally actually even"
    " currently recently finally already absolutely only truly kinda now probably both once ever mostly"
    " simply especially honestly literally basically normally generally personally too then soon all no"
    " longer"
)
ADVERBS = frozenset(_ADVERBS.split())

_SPECIAL = {"am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't", "go": "goes"}
_SPECIAL |= {"are": "is", "aren't": "isn't", "dont": "doesn't", "gotta": "has to", "gonna": "is going to"}
_SPECIAL |= {"wanna": "wants to", "be": "is"}
_HISSING = re.compile(r"(?:s|sh|ch|x|z|o)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")


def is_past(verb: str) -> bool:
    """Whether a word is, or could be, a verb in the past tense."""
    return verb in PAST or (
        verb.endswith("ed") and len(verb) > 3 and verb not in ("need", "feed", "speed", "breed")
    )


def third_person(verb: str) -> str:
    """The form of a verb that follows `the user`."""
    plain = verb.replace("’", "'")
    if plain in _SPECIAL:
        return _SPECIAL[plain]
    if plain in MODALS or is_past(plain):
        return verb
    if _CONSONANT_Y.search(plain):
        return verb[:-1] + "ies"
    return verb + ("es" if _HISSING.search(plain) else "s")


# --- sentences ---

USER = "the user"

_CONTRACTED = (
    (re.compile(r"\b([Mm]y (?:full |first )?name)['’]s\b"), r"\1 is"),
    (re.compile(r"\bI['’]m not\b"), "I am not"),
    (re.compile(r"\bI(?:['’]m|m)\b"), "I am"),
    (re.compile(r"\bI(?:['’]ve|ve)\b"), "I have"),
    (re.compile(r"\bI['’]ll\b"), "I will"),
    (re.compile(r"\bI['’]d (?=(?:\w+ )?(?:been|had|gone|got|never|already|just|\w+ed)\b)"), "I had "),
    (re.compile(r"\bI['’]d\b"), "I would"),
    (re.compile(r"\b[Ww]e['’]re\b"), "we are"),
    (re.compile(r"\b[Ww]e['’]ve\b"), "we have"),
    (re.compile(r"\b[Ww]e['’]ll\b"), "we will"),
    (re.compile(r"\b[Ww]e['’]d\b"), "we would"),
    (re.compile(r"\bgonna\b", re.IGNORECASE), "going to"),
    (re.compile(r"\bwanna\b", re.IGNORECASE), "want to"),
    (re.compile(r"\bI gotta\b|^gotta\b", re.IGNORECASE), "I have to"),
    (re.compile(r"\bi\b(?!\.)"), "I"),
)
# Any text that one of these patterns finds contains this.
_MAY_CONTRACT = re.compile(r"['’]|\bI(?:m|ve)\b|\bi\b|(?i:gonna|wanna|gotta)")
_TOKENS = re.compile(r"\s+|[^\W_]+(?:['’-][^\W\d_]+)*|[^\w\s]|_")
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours|ourselves)\b", re.IGNORECASE)
_SPEAKING_TO = re.compile(r"\b(?:you|your|yours|yourself|you['’]\w+|u|ur|let['’]s|lets)\b", re.IGNORECASE)
_INVERTED = re.compile(r"\b(?:am|do|did|have|was|should|can|could|would|will|don['’]t) I\b", re.IGNORECASE)
_AND_I = re.compile(
    r"^(?:My|Our) ((?:(?!(?:is|was|are|were|has|have|had|and)\b)[\w'’-]+ ){1,3})and I\b", re.IGNORECASE
)
_NO_VERBS = "and or but in on at as who with a an the to for from of not when while because by if"
_NO_VERB = frozenset(_NO_VERBS.split())
_WITHOUT_SUBJECT = re.compile(
    r"(?:(?P<adverb>just|also|still|recently|finally|even|already|never|always|definitely"
    r"|really) )?(?P<verb>[^\W\d_]+(?:['’]t)?)\b",
    re.IGNORECASE,
)
_HAS_OBJECT = re.compile(r" (?:my|our|a|an|some|the|it|up|off)\b")
_GOES_ON = re.compile(r" [^\s,]")
_PERFECT = frozenset({"been", "gone", "done", "seen"})
_NOT_VERBS = frozenset(
    {"red", "used", "left", "lost", "set", "cost", "cast", "shed", "hundred", "beloved", "bed"}
)
_OPENING_VERBS = "love like enjoy hate miss need want hope wish think feel live work plan prefer can't"
_OPEN_VERBS = frozenset(_OPENING_VERBS.split())
_HELPING = frozenset({"is", "has", "does", "doesn't", "hasn't", "isn't", "has to", "is going to", "helps"})
_LINKED = frozenset({"and", "or", "but"})
_CLAUSE = frozenset(
    ["is", "was", "are", "were", "has", "had", "been", "it", "that", "this", "there"]
)  # a clause, not a list of people


def is_first_person(sentence: str) -> bool:
    """Whether the speaker speaks of themselves."""
    return bool(_FIRST_PERSON.search(sentence))


def speaks_to_somebody(sentence: str) -> bool:
    """Whether the sentence addresses the listener."""
    return bool(_SPEAKING_TO.search(sentence))


@remember
def to_third_person(sentence: str) -> str | None:
    """The sentence in the third person; `None` if it cannot be rewritten cleanly."""
    told = around_speech(mask_numerals(sentence), _rewrite)
    return unmask_numerals(told) if told else None


def _rewrite(sentence: str) -> str | None:
    plain = _with_subject(_expanded(sentence))
    if not is_first_person(plain) or speaks_to_somebody(plain) or _INVERTED.search(plain):
        return None
    rewritten = "".join(_Rewriter(_TOKENS.findall(plain)).rewrite())
    return rewritten[0].upper() + rewritten[1:]


@remember
def with_subject(sentence: str) -> str:
    """The sentence with the subject `I` if the speaker left it out, and without contractions of it."""
    return _with_subject(_expanded(sentence))


def quote(sentence: str) -> str:
    """The sentence as a literal quote of the user."""
    inner = sentence.replace('"', "'").replace("“", "'").replace("”", "'")
    return f'The user said: "{inner}"'


def _expanded(sentence: str) -> str:
    if not _MAY_CONTRACT.search(sentence):
        return _AND_I.sub(r"I and my \1", sentence).replace("  ", " ")
    for pattern, whole in _CONTRACTED:
        sentence = pattern.sub(whole, sentence)
    return _AND_I.sub(r"I and my \1", sentence).replace("  ", " ")


def _with_subject(sentence: str) -> str:
    """The sentence with the subject `I` if the speaker left it out, as in "Just got back"."""
    match = _WITHOUT_SUBJECT.match(sentence)
    if not match:
        return sentence
    verb = match["verb"].lower()
    rest = sentence[match.end() :]
    adverb = f"{match['adverb'].lower()} " if match["adverb"] else ""
    if verb in _PERFECT:
        return f"I have {adverb}{verb}{rest}"
    if verb == "going" and rest.startswith(" to "):
        return f"I am {adverb}going{rest}"
    can_open = verb in _OPEN_VERBS and not re.match(r" (?:is|was|are|of)\b", rest)
    if can_open or (is_past(verb) and (_HAS_OBJECT if verb in _NOT_VERBS else _GOES_ON).match(rest)):
        return f"I {adverb}{verb}{rest}"
    return sentence


class _Rewriter:
    """Rewrites the words of a sentence one by one, and keeps the state that verbs depend on."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._words: list[str] = []
        self._was_named = False
        self._is_ambiguous = False
        self._agreeing = False
        """Whether the next verb must agree with `the user`."""
        self._linked_verbs = False
        """Whether a verb after `and` is in the present tense too."""

    def rewrite(self) -> list[str]:
        """The words in the third person."""
        for place, token in enumerate(self._tokens):
            self._words.append(self._rewrite_token(place, token))
        return self._words

    def _rewrite_token(self, place: int, token: str) -> str:
        if token.isspace() or not (token[0].isalpha()):
            self._agreeing = self._agreeing and token.isspace()
            self._linked_verbs = self._linked_verbs and (token.isspace() or token[0].isdigit())
            return token
        pronoun = self._pronoun(place, token)
        if pronoun is not None:
            return pronoun
        return self._verb(token) if self._agreeing else self._other(token)

    def _pronoun(self, place: int, token: str) -> str | None:
        low = token.lower()
        if token == "I":
            self._agreeing = not self._follows_and()
            return self._name(USER)
        if low in ("me", "myself"):
            return self._name(USER if low == "me" else "themselves")
        if low in ("my", "mine"):
            return self._possessive(low)
        return self._plural(place, low)

    def _plural(self, _place: int, low: str) -> str | None:
        if low == "we":
            self._is_ambiguous = True
            return "they" if self._was_named else self._name("the user and others")
        if low in ("us", "our", "ours", "ourselves"):
            return self._their(low)
        return None

    def _their(self, low: str) -> str:
        if not self._was_named:
            self._was_named = True
            return "the user's" if low in ("our", "ours") else "the user and others"
        return {"us": "them", "our": "their", "ours": "theirs", "ourselves": "themselves"}[low]

    def _possessive(self, low: str) -> str:
        if self._was_named and not self._is_ambiguous:
            return "their" if low == "my" else "theirs"
        return self._name("the user's")

    def _name(self, name: str) -> str:
        self._was_named = True
        return name

    def _verb(self, token: str) -> str:
        low = token.lower()
        if low in ADVERBS or low.endswith("ly"):
            return token
        self._agreeing = False
        if low in _NO_VERB:
            return token
        rewritten = third_person(low)
        self._linked_verbs = rewritten != low and rewritten not in _HELPING
        return rewritten

    def _other(self, token: str) -> str:
        low = token.lower()
        if low in ("they", "them", "their") or low.endswith("ren"):
            self._is_ambiguous = True
        if low in ("to", "that", "who", "which", "when", "if", "will", "can", "would", "is", "has", "not"):
            self._linked_verbs = False
        if self._linked_verbs and low in BASE and self._follows_link():
            return third_person(low)
        return token

    def _follows_link(self) -> bool:
        before = [word for word in self._words[-4:] if not word.isspace()]
        return bool(before) and before[-1].lower() in _LINKED

    def _follows_and(self) -> bool:
        """Whether `I` is one of several, as in "my wife and I", so that the verb is a plural."""
        before = [word for word in self._words if not word.isspace()]
        is_list = len(before) < 7 and not _CLAUSE & {word.lower() for word in before}
        return is_list and before[-1:] == ["and"] and not any(USER in word for word in before)
