"""Tells whether a text is in a language that the patterns cover."""

import re

_OTHER_SCRIPT = re.compile(
    "[\u3040-\u30ff\uac00-\ud7af\u0400-\u04ff\u0370-\u03ff\u0590-\u05ff\u0600-\u06ff\u0900-\u0dff\u0e00-\u0e7f]"
)
_CHINESE = re.compile("[\u4e00-\u9fff]{2}")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_FEWEST = 4  # words of a text whose language can be told
_ENGLISH = frozenset(
    re.findall(
        r"\S+",
        "a about all am an and are as at be but by can can't did do does don't dont for from get go got"
        " had has have he hello her here hi his how i i'm if im in is it it's ive just like me my new no"
        " not now of ok on one or our out please she so thanks that the there they this to up was we what"
        " when where who why will with would yes you your",
    )
)
_OTHER = frozenset(
    re.findall(
        r"\S+",
        "al as au auch auf avec ben bin c'est com con da dans das del dem den der des di die do dos du e"
        " een ein eine el em en es est estou estoy et eu för für gli habe har heb het ho ich ik il inte"
        " io ist j'ai jag je jest jestem la las le les lo los ma maar mam mas med mein meine mes met meu"
        " mi mia mijn min minha mio mis mit mitt moja mon moro muito muy mój na naar ne nicht nie niet no"
        " noch non nos nous nur não nós o och ook os para pas per pero por pour på que qui se siamo się"
        " sono sou soy suis tengo tenho uma un una und une van vivo von voor vous wij wir y yo zu är",
    )
)


def is_covered(text: str) -> bool:
    """Whether a text is English, Chinese, or too short to tell."""
    letters = _LETTER.findall(text[:2000])
    if len(_OTHER_SCRIPT.findall(text[:2000])) > len(letters) / 4:
        return False
    words = [word.lower() for word in _WORD.findall(text[:2000]) if word.isascii() or len(word) < 15]
    if len(words) < _FEWEST:
        return True
    english, other = (sum(word in each for word in words) for each in (_ENGLISH, _OTHER))
    return english >= other or other < 2


def is_certainly_covered(text: str) -> bool:
    """Whether a text has enough English or Chinese words to tell."""
    if _CHINESE.search(text) and not _OTHER_SCRIPT.search(text):
        return True
    words = [word.lower() for word in _WORD.findall(text[:2000])]
    return sum(word in _ENGLISH for word in words) >= 2 and is_covered(text)
