"""Changes: whether a statement in the third person ends what an earlier one says.

"The user moved to Porto" ends "The user lives in Lisbon", and "The user and Paula broke up" ends "The user's
girlfriend is Paula". A statement about the past ends nothing, and neither does one about another of several:
children, languages, allergies.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..texts.remembered import remember
from ..texts.similarity import gist_of
from ..texts.synonyms import LIGHT, SAME
from ..texts.terms import terms
from .clauses import facts_of, slot_in
from .slots import Slot
from .stances import contradict, stance_of, takes_back

_ANY_CASE = re.IGNORECASE
_PAST_ONLY = re.compile(
    r"\b(?:back in|back then|when (?:the user|they|he|she) (?:was|were)|as a (?:kid|child|teenager|student"
    r"|boy|girl)|used to|previously|formerly|at that time"
    r"|in those days|years ago"
    r"|(?<!has )(?<!have )lived in|worked (?:at|for|as|in)|was an?|had been|grew up)\b"
    r"|小时候|曾经|以前|从前|那时",
    _ANY_CASE,
)
_FOR_A_WHILE = re.compile(
    r"\bfor (?:an?|one|two|three|four|five|six|\d+) (?:years?|months?|weeks?)\b", _ANY_CASE
)
_STOPPED = re.compile(
    r"\b(?:stopped|quit|gave up|given up|no longer|any ?more|retired|broke up)\b|戒|不再|分手", _ANY_CASE
)
_STILL = re.compile(r"\b(?:has|have|is|are|now|still|currently)\b|现在|目前", _ANY_CASE)


@dataclass(frozen=True)
class _Rule:
    """An ending: how it is said, and which earlier statements it can end."""

    ending: re.Pattern[str]
    """How it is said; the group `what` has the words about what has ended."""
    ended: re.Pattern[str]
    """What an earlier statement says if it can be ended so."""
    enough: float = 0.5
    """The least share of the words of `what` that the earlier statement has, too."""
    sign: re.Pattern[str] | None = None
    """What stands after `what` where a rule begins with it. To look for this first is much faster."""

    def find_ending(self, text: str) -> re.Match[str] | None:
        """Where a statement says that something has ended; `None` if it does not."""
        if self.sign is not None and not self.sign.search(text):
            return None
        return self.ending.search(text)


def _rule(ending: str, ended: str, enough: float = 0.5) -> _Rule:
    after = ending.removeprefix(_WHAT)
    sign = None if after == ending else re.compile(after, _ANY_CASE)
    return _Rule(re.compile(ending, _ANY_CASE), re.compile(ended, _ANY_CASE), enough, sign)


_WHAT = r"(?P<what>[^.,;!?()]{2,60})"
_RULES = (
    # a habit, a diet, an activity
    _rule(
        rf"\b(?:stopped|quit|gave up(?: on)?|given up(?: on)?|is done with|has finished with) (?!(?:my"
        rf"|their|the|his|her) job\b|working\b){_WHAT}",
        r"\b(?:is|does|do|has|eats?|drinks?|smokes?|plays?|goes|started|runs?|loves?|likes?|takes?|uses?"
        r"|reads?|watch\w*|practi\w+|learn\w*|collects?|climb\w*|swims?|trains?|follows?|on a?|\w+ing)\b",
    ),
    _rule(rf"\bno longer {_WHAT}", r"\w", 0.6),
    _rule(r"(?:n['’]t|\bnot) (?P<what>[^.,;!?()]{2,60}?),? any ?more", r"\w", 0.6),
    # a possession
    _rule(
        rf"\b(?:sold|gave away|got rid of|lost|scrapped|returned|crashed) (?:my|their|the|his|her|our"
        rf"|an?) {_WHAT}",
        r"\b(?:has|have|owns?|drives?|rides?|bought|got|uses?)\b",
    ),
    # a partner, a pet, a flatmate
    _rule(
        r"(?P<what>[^.,;!?()]{2,60}) (?:broke up|split up|separated|are no longer together|got divorced"
        r"|are divorced)",
        r"\b(?:girlfriend|boyfriend|partner|wife|husband|fianc\w+|dating|married|engaged)\b",
        0.3,
    ),
    _rule(
        rf"\b(?:broke up with|split up with|separated from|divorced|left) (?:(?:my|their"
        rf"|the user['’]s) )?{_WHAT}",
        r"\b(?:girlfriend|boyfriend|partner|wife|husband|fianc\w+|dating|married|engaged)\b",
        0.3,
    ),
    _rule(
        r"(?P<what>[^.,;!?()]{2,60}) (?:died|passed away|was put down|is dead)\b",
        r"^(?!.*\b(?:two|three|four|five|several|\d+)\b).*\b(?:has|have|is called|is named|called|owns?"
        r"|adopted|got|is an?|lives?)\b",
        0.6,
    ),
    _rule(r"(?P<what>[^.,;!?()]{2,60}) moved out\b", r"\b(?:flatmate|roommate|lives? with|housemate)\b", 0.3),
    # a job
    _rule(
        rf"\b(?:left|quit|resigned from|was fired from|was laid off (?:from|by)|stopped working (?:at|for)"
        rf"|no longer works? (?:at|for)|quit (?:my|their) job (?:at|with)|left (?:my|their) job (?:at"
        rf"|with)) (?!their job|my job){_WHAT}",
        r"\b(?:works?|working|employ\w+|job|starts?|started|joined|intern\w*|nurse|teacher|engineer"
        r"|manager|doctor|at|band|team|club|choir|group|member)\b",
    ),
    # a plan
    _rule(
        r"\b(?:postponed?|cancel(?:l?ed)?|rescheduled?|moved|pushed? back|called off"
        r"|brought forward) (?:my|their|the|our|his|her) (?P<what>[^.,;!?()]{2,60}?)(?: (?:to|until|by"
        r"|because|for)\b|[.,;!]|$)",
        r"\d|\b(?:plans?|will|going|booked|gets?|is|on)\b",
        0.6,
    ),
    _rule(
        r"(?P<what>[^.,;!?()]{2,60}) (?:was|is|got|has been) (?:moved|postponed|rescheduled|pushed back"
        r"|cancel+ed|called off|brought forward)\b",
        r"\d",
        0.6,
    ),
    # a stage of life
    _rule(
        r"\b(?:had (?:a|the|their) (?:baby|son|daughter|girl|boy)|gave birth|(?:baby|son"
        r"|daughter) was born)(?P<what>)",
        r"\b(?:is pregnant|expect\w* a)\b",
        0.0,
    ),
    _rule(
        r"\b(?:has an? (?:new )?(?:girlfriend|boyfriend|partner)|is (?:now )?(?:dating|engaged|married)"
        r"|got (?:engaged|married))\b(?P<what>)",
        r"\bis single\b",
        0.0,
    ),
    _rule(r"\bdropped out\b(?P<what>)", r"\b(?:is an? (?:\w+ ){0,2}student|studies|is studying)\b", 0.0),
    _rule(r"\bgraduated\b(?P<what>)", r"\b(?:is an? (?:\w+ ){0,2}student|studies|is studying)\b", 0.0),
    _rule(
        r"\beats? (?:meat|fish|everything|chicken|normally)\b.*\b(?:again|now)\b(?P<what>)",
        r"\b(?:vegan|vegetarian|plant-based)\b",
        0.0,
    ),
    # one thing instead of another
    _rule(
        rf"\binstead of {_WHAT}",
        r"\b(?:uses?|on|drinks?|eats?|drives?|prefers?|takes?|runs?|likes?|wants?)\b",
    ),
    _rule(
        r"\b(?:switched|migrated|moved|changed|upgraded|converted) "
        r"(?:away )?from (?P<what>[^.,;!?()]{2,40}?) to\b",
        r"\b(?:uses?|on|lives?|works?|drinks?|eats?|drives?|runs?|are|is)\b",
    ),
    # Chinese
    _rule(
        "(?P<what>[^。，；！]{1,12})(?:分手|离婚)了?",
        "女朋友|男朋友|女友|男友|老婆|老公|妻子|丈夫|对象|在一起",
        0.3,
    ),
    _rule(
        "(?:不再|再也不)(?P<what>[^。，；！]{1,12})|(?:不|没)(?P<what2>[^。，；！]{1,12})了|戒(?:了)?(?P<what3>[烟酒糖咖啡素]+)"
        "|放弃了?(?P<what4>[^。，；！]{1,12})",
        "\\w",
    ),
)
_AFTERWARDS = re.compile(
    r" (?:after|because|since|last|this|in \d|in [A-Z]\w+ \d|on \d|on the|for|when|while|as|so|due to"
    r"|years?|months?|\w+ (?:days?|weeks?|months?|years?) (?:ago|before)) ?"
)
_EMPLOYER = re.compile(
    r"\b(?:at|for) (?:the )?(?P<name>[A-Z][\w&-]+)|在(?P<chinese>[^。，；！]{1,20}?)(?:做|当|工作|上班|任职)"
)
_ENDS_JOB = re.compile(
    r"\b(?:quit|left|lost|resigned from) (?:my|their|the|his|her) (?:[\w-]+ )?job\b|\b(?:got |was "
    r"|been )(?:fired|laid off)\b|^the user (?:has )?(?:just |recently |finally )?(?:retired|resigned)\b"
    r"|\b(?:is|are) (?:now )?(?:unemployed|between jobs|retired|freelancing|self-employed)\b"
    r"|\bworks? as a freelancer\b"
    r"|辞职|离职|退休|被裁|被解雇|辞掉|换了(?:新)?工作",
    _ANY_CASE,
)
_ENDS_PARTNER = re.compile(
    r"^the user (?:just |recently |and their \w+ )?(?:got |is |are )?(?:divorced|single|separated)\b",
    _ANY_CASE,
)
_PARTNER = re.compile(
    r"\b(?:girlfriend|boyfriend|wife|husband|fianc\w+)\b.{0,30}\b(?:is|called|named)\b|\b(?:is"
    r"|are) (?:dating|married|engaged)\b",
    _ANY_CASE,
)
_OF_PARTNERS = re.compile(
    r"\b(?:girlfriend|boyfriend|partner|dating|engaged|married|divorced|separated|broke up|split up"
    r"|single)\b|分手|离婚|结婚|单身",
    _ANY_CASE,
)
_OF_STUDIES = re.compile(r"\b(?:graduated|dropped out)\b|毕业|退学", _ANY_CASE)
_OF_FOOD = re.compile(r"\beats?\b|素|吃", _ANY_CASE)
_WORKS = ("job", "employer")
_VERSION = re.compile(
    r"\b(?!(?:January|February|March|April|May|June|July|August|September|October|November|December|On|In"
    r"|At|By|Since|The|About|Seat|Room|Line)\b)"
    r"(?P<name>[A-Z][\w+#-]{1,20}) (?P<number>\d[\d.]{0,8})\b"
)
_RUNS = re.compile(r"\b(?:is|are|on|uses?|using|runs?|upgraded|migrated|switched|moved|has)\b", _ANY_CASE)
_NOW_OTHER = re.compile(
    r"^the user (?P<verb>drives|rides|prefers) (?P<what>[^.,;]{2,40}) now\b|^the user now (?P<verb2>drives"
    r"|rides|prefers) ",
    _ANY_CASE,
)
_DENIED = re.compile(
    r"\b(?:not|never|no longer|cannot|stopped|quit|gave up|sold|died|left|broke up)\b|n['’]t\b|[不没戒]",
    _ANY_CASE,
)
_AGE = re.compile(
    r"\b(?P<who>(?-i:[A-Z])\w+|son|daughter|mother|mom|mum|father|dad|sister|brother|wife|husband) (?:is"
    r"|turned|just turned|is now|turns|is already) (?P<age>\d{1,3})\b"
    r"(?! (?:euros?|km|kg|cm|m|percent|minutes|hours|days|weeks|months|January|February|March|April|May"
    r"|June|July|August|September|October|November|December)\b)",
    _ANY_CASE,
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d\b")
_BY_NOW = re.compile(
    r"\b(?:now|reached|already|by now|went up to|is up to|rose to|raised to|increased to|down to)\b",
    _ANY_CASE,
)
_CJK = re.compile("[\u4e00-\u9fff]")
_CHINESE_LIGHT = re.compile("^(?:用户|和|跟|与|我|再|能|会|想|在|太)+|(?:了|的|已经)+$")
_STOP = (
    frozenset(
        terms(
            "the user users their they his her my our an a "
            "to of in on at for with from and or some any all "
            "up out off drinking eating doing going working using playing being having job"
        )
    )
    | LIGHT
)
_SYNONYMS = {"wed": "marri", "marriag": "marri", "smoke": "smoke", "cigarett": "smoke", "climb": "climb"}
_SIGNS_OF_END: tuple[Callable[[str], re.Match[str] | None], ...] = (
    *(pattern.search for pattern in (_ENDS_JOB, _ENDS_PARTNER, _VERSION, _AGE, _BY_NOW, _NOW_OTHER)),
    *(rule.find_ending for rule in _RULES),
)


def ends(new: str, known: str) -> bool:
    """Whether a new statement ends a fact that a known one states."""
    if tells_of_the_past(new) and not _STOPPED.search(new):
        return False
    return any(
        _ends_fact(statement, fact)
        for statement in facts_of(gist_of(new))
        for fact in facts_of(gist_of(known))
    )


@remember
def can_end(text: str) -> bool:
    """Whether a statement can end anything, so that it has to be compared with what is known."""
    return any(find(text) for find in _SIGNS_OF_END) or takes_back(text) or any(map(slot_in, facts_of(text)))


def tells_of_the_past(text: str) -> bool:
    """Whether a statement is only about the past, such as "The user lived in Bergen for six years"."""
    if _PAST_ONLY.search(text):
        return True
    return bool(_FOR_A_WHILE.search(text)) and not _STILL.search(text)


def slots_concerned(text: str) -> frozenset[str]:
    """The slots whose known values a statement may end. By them these values are found."""
    slot = slot_in(text)
    names = {slot.name} if slot else set()
    if _ENDS_JOB.search(text) or names & set(_WORKS):
        names |= set(_WORKS)
    if _OF_PARTNERS.search(text):
        names |= {
            "relationship",
            *(f"close to them {who}" for who in ("girlfriend", "boyfriend", "wife", "husband")),
        }
    if _OF_STUDIES.search(text):
        names.add("job")
    if _OF_FOOD.search(text):
        names.add("diet")
    return frozenset(names)


def _ends_fact(new: str, known: str) -> bool:
    slot, other = slot_in(new), slot_in(known)
    if slot and other and slot.name in _WORKS and other.name in _WORKS and _works_elsewhere(new, known):
        return not tells_of_the_past(known)
    if slot and other and slot.name == other.name:
        return not _is_same_value(slot, other) and not tells_of_the_past(known)
    if _DENIED.search(known):
        return takes_back(new) and contradict(stance_of(new), stance_of(known))
    if _ENDS_JOB.search(new) and other and other.name in _WORKS:
        return not _names_another(new, known)
    if _ENDS_PARTNER.search(new) and _PARTNER.search(known):
        return True
    if takes_back(new) and contradict(stance_of(new), stance_of(known)):
        return True
    return (
        _ends_by_rule(new, known)
        or _has_new_version(new, known)
        or _has_new_age(new, known)
        or _has_new_number(new, known)
        or _is_replaced(new, known)
    )


def _works_elsewhere(new: str, known: str) -> bool:
    """Whether both name an employer, and not the same one."""
    one, other = _EMPLOYER.search(new), _EMPLOYER.search(known)
    if one is None or other is None:
        return False
    return (one["name"] or one["chinese"]) != (other["name"] or other["chinese"])


def _is_same_value(slot: Slot, other: Slot) -> bool:
    """Whether two values are the same, or one is a part of the other: "Ghent" and "Ghent, Belgium"."""
    return slot.value in other.value or other.value in slot.value


def _names_another(new: str, known: str) -> bool:
    """Whether a statement about a job that ended names an employer that the known one does not name."""
    named = re.search(r"\b(?:at|from|for|with) (?:the )?([A-Z]\w+)", new)
    return (
        named is not None
        and named.group(1).lower() not in known.lower()
        and bool(re.search(r"\b[A-Z]\w+", known[9:]))
    )


def _ends_by_rule(new: str, known: str) -> bool:
    said = _words(known)
    for rule in _RULES:
        match = rule.find_ending(new)
        if match is None or not rule.ended.search(known):
            continue
        text = _AFTERWARDS.split(next(filter(None, match.groups()), ""))[0]
        if not rule.enough or _is_said_in_chinese(text, known):
            return True
        what = _words(text)
        if what and len(what & said) >= max(1, rule.enough * len(what)):
            return True
    return False


def _has_new_version(new: str, known: str) -> bool:
    """As with "The user is on Postgres 15" and "The user upgraded to Postgres 17"."""
    if not (_RUNS.search(new) and _RUNS.search(known)):
        return False
    versions = {match["name"].lower(): match["number"] for match in _VERSION.finditer(known)}
    return any(
        versions.get(match["name"].lower(), match["number"]) != match["number"]
        for match in _VERSION.finditer(new)
    ) and bool(re.search(r"\b(?:now|upgraded|migrated|switched|moved|on)\b", new))


def _has_new_age(new: str, known: str) -> bool:
    """As with "The user's daughter Mia is 7" and "Mia turned 8"."""
    ages = {match["who"].lower(): match["age"] for match in _AGE.finditer(known)}
    return any(ages.get(match["who"].lower(), match["age"]) != match["age"] for match in _AGE.finditer(new))


def _has_new_number(new: str, known: str) -> bool:
    """As with "The user is rated 1100 on Lichess" and "The user reached 1400 on Lichess"."""
    numbers, others = _NUMBER.findall(new), _NUMBER.findall(known)
    if len(numbers) != 1 or len(others) != 1 or numbers == others or not _BY_NOW.search(new):
        return False
    words, said = _words(_NUMBER.sub("", new)), _words(_NUMBER.sub("", known))
    return bool(words & said) and 2 * len(words & said) >= min(len(words), len(said))


def _is_replaced(new: str, known: str) -> bool:
    """As with "The user drives a Golf" and "The user drives a Kia now"."""
    match = _NOW_OTHER.search(new)
    verb = match and (match["verb"] or match["verb2"])
    return bool(verb) and known.lower().startswith(f"the user {verb}".lower())


def _is_said_in_chinese(text: str, known: str) -> bool:
    """Whether a known statement names what has ended, in Chinese."""
    named = _CHINESE_LIGHT.sub("", text)
    return bool(_CJK.match(named)) and named in known


def _words(text: str) -> frozenset[str]:
    """The words of a text that tell it from others, with one word for synonyms."""
    plain = (SAME.get(word, word) for word in terms(text) if word not in _STOP)
    return frozenset(_SYNONYMS.get(word, word) for word in plain if word not in _STOP)
