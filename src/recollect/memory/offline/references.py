"""Those close to the user: whom "she" or "he" stands for in a sentence, and what they are called."""

import re

_SHE = (
    r"(?:step|grand|god)?(?:mom|mum|mother|daughter)|grandma|sister|wife|girlfriend|fiancée|aunt|niece"
    r"|mother-in-law|sister-in-law"
)
_HE = (
    r"(?:step|grand|god)?(?:dad|father|son)|grandpa|brother|husband|boyfriend|fiancé|uncle|nephew"
    r"|father-in-law|brother-in-law"
)
_ANY = (
    r"partner|fiance|friend|boss|manager|flatmate|roommate|neighbou?r|colleague|cousin|teacher|therapist"
    r"|doctor|baby|kid|child|toddler"
    r"|dog|cat|pet|puppy|kitten|horse|parrot|rabbit|greyhound|beagle|labrador|terrier"
)
_NOUN = rf"(?:{_SHE}|{_HE}|{_ANY})"
_SOMEBODY = re.compile(
    r"\b(?:(?i:my|our) (?:(?:new|little|big|older|younger|eldest|youngest|best|old|oldest|late) )?"
    rf"(?P<mine>{_NOUN})"
    rf"|(?:adopted|have|had|got|bought|has) (?:an?|one) (?:[\w-]+ ){{0,2}}?(?P<other>{_NOUN}))\b(?!['’]s)"
    r"(?P<name>,? (?:called |named )?(?!I\b|Is\b|She\b|He\b)[A-Z][a-z]+\b)?",
)
_IS_SHE, _IS_HE = re.compile(_SHE), re.compile(_HE)
_PRONOUN = re.compile(r"(?P<word>she|he|her|his)(?P<more>['’]s|['’]ll|['’]d)? ", re.IGNORECASE)
_NAME_SIGN = re.compile(r",? (?:called|named) |, ")
_WORDS = {"'s": " is", "'ll": " will", "'d": " would"}


class Referent:
    """Somebody close to the user, as "my mother"."""

    def __init__(self, words: str, pronouns: frozenset[str]) -> None:
        self.words = words
        self._pronouns = pronouns

    def replace_in(self, sentence: str) -> str:
        """The sentence, with the somebody instead of the pronoun at its start."""
        match = _PRONOUN.match(sentence)
        if not match or match["word"].lower() not in self._pronouns:
            return sentence
        if match["word"].lower() in ("her", "his"):
            return f"{self.words}'s {sentence[match.end() :]}"
        more = _WORDS.get((match["more"] or "").replace("’", "'"), "")
        rest = sentence[match.end() :]
        if more == " is" and re.match(r"(?:been|got|had|gone|started|lost|just (?:been|got|turned))\b", rest):
            more = " has"
        return f"{self.words}{more} {rest}"


def referent_in(text: str) -> Referent | None:
    """The last somebody close to the user that a text names; `None` if it names nobody."""
    found = list(_SOMEBODY.finditer(text))
    if not found:
        return None
    last = found[-1]
    noun = last["mine"] or last["other"]
    words = (
        f"My {noun}{last['name'] or ''}" if last["other"] else f"My{last.group()[last.group().index(' ') :]}"
    )
    return Referent(_NAME_SIGN.sub(" ", words), _pronouns_of(noun))


def _pronouns_of(noun: str) -> frozenset[str]:
    if _IS_SHE.fullmatch(noun):
        return frozenset({"she", "her"})
    return frozenset({"he", "his"} if _IS_HE.fullmatch(noun) else {"she", "her", "he", "his"})


_RELATION = re.compile(
    rf"\b(?i:my) (?:(?:new|best|little|big|older|younger|eldest|old|late) )?(?P<who>{_SHE}|{_HE}"
    rf"|{_ANY}) (?:is called |called |named )?(?P<name>(?!I\b)[A-Z][a-z]+)\b(?!['’]s)"
)


def relations_in(text: str) -> list[tuple[str, str]]:
    """Those close to the user whom a text names, as pairs of what they are to the user and their name."""
    return [(match["who"], match["name"]) for match in _RELATION.finditer(text)]
