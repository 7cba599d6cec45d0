"""English verbs, as far as a sentence in the first person needs them to be told in the third."""

import re

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
    """Whether a word is a verb in the past tense, or could be one."""
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
