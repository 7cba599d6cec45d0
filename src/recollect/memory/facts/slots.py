"""Slots: attributes of the user with one value at a time, such as `home`, read from the text of an entry."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..texts.remembered import remember

Rewrite = Callable[[str], str | None]
"""Rewrites a clause in the third person; `None` if it cannot."""

_VALUE = r"(?P<value>[^.,;!?()。，；！？（）]{1,60}?)"
_END = (
    r"(?= (?:and|but|with|since|for|because|now|at the moment|these days|as|where|which|in order|this|last"
    r"|on|again|in (?:early |late |mid-?)?(?:\d{4}|January|February|March|April|May|June|July|August"
    r"|September|October|November|December"
    r"|spring|summer|autumn|fall|winter|the week)|from|two weeks|after|before)\b|[.,;!?()]|$)"
)
_NOW = (
    r"(?:is |has |also |now |just |currently |recently |finally |actually |is now |has just |has recently )*"
)
OCCUPATION = (
    r"(?:nurse|teacher|doctor|lawyer|engineer|student|chef|cook|writer|artist|designer|developer"
    r"|programmer|manager|accountant|analyst"
    r"|architect|dentist|driver|farmer|journalist|mechanic|musician|painter|photographer|pilot|plumber"
    r"|police officer|professor|psychologist"
    r"|researcher|scientist|secretary|singer|soldier|therapist|translator|vet|veterinarian|waiter"
    r"|waitress|actor|actress|banker|barista|consultant"
    r"|electrician|firefighter|librarian|paramedic|pharmacist|physicist|retiree|salesperson|surgeon"
    r"|tutor|freelancer)"
)


@dataclass(frozen=True)
class Slot:
    """An attribute of the user with one value at a time, and the value."""

    name: str
    value: str


def _user(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"^the user(?:'s|’s)? {pattern}", re.IGNORECASE)


_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("name", _user(rf"(?:(?:full |first )?name is|is called|is named|goes by) {_VALUE}{_END}")),
    (
        "home",
        _user(
            rf"{_NOW}(?:liv(?:es|ing) in(?: an? [\w ]{{1,20}} (?:in|near))?|back (?:home )?in|resides in"
            rf"|based in|(?:moved|relocated) (?:back |from [^.,;]{{1,40}}? )?to"
            rf"|settled in|and others (?:live in|moved (?:back |from [^.,;]{{1,40}}? )?to)) {_VALUE}{_END}"
        ),
    ),
    ("home", _user(rf"(?:new |current |home )?(?:home|home town|address) is (?:in |at )?{_VALUE}{_END}")),
    (
        "job",
        _user(
            rf"{_NOW}(?:works|working|employed|got a job"
            rf"|started(?: working)?) as (?:an? )?{_VALUE}(?= at| for| in\b|{_END[3:]}"
        ),
    ),
    ("job", _user(rf"(?:job|profession|occupation) is {_VALUE}{_END}")),
    ("job", _user(rf"is (?:now )?an? (?P<value>(?:[a-z-]+ ){{0,3}}{OCCUPATION})\b")),
    (
        "employer",
        _user(
            rf"{_NOW}(?:works (?:at|for)|working (?:at|for)|employed (?:at|by)|started at"
            rf"|started (?:working |a (?:new )?job )(?:at|for)) {_VALUE}{_END}"
        ),
    ),
    ("employer", _user(rf"(?:employer|company) is {_VALUE}{_END}")),
    (
        "age",
        _user(
            r"(?:is|turned|is turning|just turned) (?P<value>\d{1,3})(?: years old)?(?=[ .,;!?()]"
            r"|$)(?! (?:minutes|hours|days|weeks|months|percent|years (?!old)|\w+s\b))"
        ),
    ),
    ("age", _user(r"age is (?P<value>\d{1,3})\b")),
    (
        "relationship",
        _user(
            rf"{_NOW}(?:got |recently got )?(?P<value>single|married|divorced|engaged|widowed|separated)\b"
        ),
    ),
    ("phone", _user(r"(?:phone|mobile|cell|telephone)(?: number)? is (?P<value>[+\d][\d ()-]{4,20}\d)")),
    ("email", _user(r"(?:e-?mail)(?: address)? is (?P<value>[^\s@]{1,64}@[^\s@]{1,64}\w)")),
    ("birthday", _user(rf"(?:birthday is|was born) (?:on )?{_VALUE}{_END}")),
    (
        "age of",
        _user(
            r"(?P<what>(?:step)?(?:son|daughter|mother|mom|mum|father|dad|wife|husband|sister|brother"
            r"|boyfriend|girlfriend|partner)"
            r"(?: [A-Z]\w+)?) (?:is|turned|just turned|is now) (?:now )?(?P<value>\d{1,3})(?: years old"
            r"| now)?(?=[ .,;!?()]|$)(?! \w+s\b)"
        ),
    ),
    (
        "close to them",
        _user(
            r"(?:new |current )?(?P<what>manager|boss|landlord|landlady|dentist|husband|wife|girlfriend"
            r"|boyfriend|fianc[ée]e?) is (?:now )?(?:called "
            r"|named )?(?P<value>(?-i:[A-Z])[\w.-]+(?: (?-i:[A-Z])\w+)?)(?=[.,;!?()]|$| now\b)"
        ),
    ),
    (
        "answer language",
        re.compile(
            r"^the user wants the assistant to (?:always |only )?(?:answer|reply|respond|write|speak"
            r"|talk)(?: \w+){0,2} in (?P<value>[A-Z]\w+)",
            re.IGNORECASE,
        ),
    ),
    ("diet", _user(rf"{_NOW}(?:an? )?(?P<value>vegan|vegetarian|pescatarian)\b")),
    ("favourite", _user(rf"favou?rite (?P<what>[\w ]{{2,30}}?) is {_VALUE}{_END}")),
)
_ENDS = "(?=[。，,；;！!（(]|$)"
_CHINESE = r"(?P<value>[^。，,；;！!（）()、]{1,30}?)"
_PATTERNS_CHINESE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("name", re.compile(f"^用户(?:的名字)?(?:叫|是叫|名叫|的名字是){_CHINESE}{_ENDS}")),
    (
        "home",
        re.compile(
            f"^用户(?:现在|目前|一直|已经|刚刚?|最近|后来|昨天|前天|上周|上个?月|去年|前年|今年)*(?:居?住在|搬到了?|搬去了?|搬家到了?"
            f"|定居在?){_CHINESE}(?:住|生活|了|工作)?{_ENDS}"
        ),
    ),
    ("employer", re.compile(f"^用户(?:现在|目前|已经)*(?:就职于|任职于|入职了?){_CHINESE}{_ENDS}")),
    (
        "employer",
        re.compile(
            "^用户(?:现在|目前|已经)*在(?P<value>[^。，,；;！!（）()、]{1,30}?)(?:工作|上班"
            "|任职)(?:了)?(?=[。，,；;！!（(]|$)"
        ),
    ),
    (
        "job",
        re.compile(
            "^用户(?:现在|目前)*(?:在[^。，,；;！!（）()、]{1,20})?(?:是|当|做)(?:一名|一个|一位"
            "|名)?(?P<value>[^。，,；;！!（）()、的]{0,10}(?:医生|护士|老师|教师|学生|工程师|程序员"
            "|设计师|律师|会计|厨师|司机|作家|画家|记者|经理|演员|歌手|警察|军人|农民|科学家|研究员))"
        ),
    ),
    (
        "age",
        re.compile("^用户(?:今年|已经|现在|刚满|刚)*(?P<value>[0-9]{1,3}|[一二三四五六七八九十]{1,4})岁"),
    ),
    (
        "age of",
        re.compile(
            "^用户的(?P<what>女儿|儿子|孩子|妈妈?|爸爸?|老公|老婆|妹妹|弟弟)(?:今年|已经|现在|刚满?|都)*(?P<value>[0-9]{1,3}"
            "|[一二三四五六七八九十]{1,4})岁"
        ),
    ),
    (
        "relationship",
        re.compile(
            "^用户(?:现在|目前|已经|刚刚?|最近|是|还是|去年|今年)*(?P<value>单身|结婚|已婚|离婚|订婚)"
        ),
    ),
    ("zodiac", re.compile("^用户(?:是)?属(?P<value>[鼠牛虎兔龙蛇马羊猴鸡狗猪])")),
    ("phone", re.compile("^用户的(?:电话|手机)(?:号码?)?是(?P<value>[+0-9][0-9 -]{4,20}[0-9])")),
    ("email", re.compile("^用户的(?:邮箱|电子邮件)(?:地址)?是(?P<value>[^\\s@]{1,64}@[^\\s@。，]{1,64})")),
    ("birthday", re.compile(f"^用户的?生日是{_CHINESE}{_ENDS}")),
    ("diet", re.compile("^用户(?:现在|目前)*(?:是|吃)(?P<value>素食者|素食主义者|素|纯素)")),
    ("favourite", re.compile(f"^用户最喜欢的(?P<what>[^。，是]{{1,10}})是{_CHINESE}{_ENDS}")),
)
_OVER = re.compile(
    r"\b(?:not|never|n['’]t|no longer|used to|might|(?-i:may)(?! \d)|could|would|wants|hopes|will|if)\b"
    r"|n['’]t\b"
    r"|[不没想要会]",
    re.IGNORECASE,
)


_ENGLISH_USER = re.compile("the user", re.IGNORECASE)
_LEADING_DATE = re.compile(
    r"^(?:In|On|Since|At) [^,.;]{3,40}?,? (?=the user\b)"
    r"|(?<=^用户)(?:(?:19|20)\d\d年(?:\d{1,2}月)?(?:\d{1,2}日)?)"
)


@remember
def slot_of(text: str) -> Slot | None:
    """The slot that a text in the third person fills; `None` if it fills none, or ends one."""
    text = _LEADING_DATE.sub("", text, count=1)
    for name, pattern in _patterns_for(text):
        match = pattern.search(text)
        is_over = match and name != "answer language" and _OVER.search(match.group())
        if match and not is_over and _fits(name, match["value"]):
            kind = f" {match['what'].lower().strip()}" if "what" in pattern.groupindex else ""
            return Slot(name + kind, match["value"].strip().lower())
    return None


def _patterns_for(text: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The patterns that a text can match: each begins with the user, in English or in Chinese."""
    if _ENGLISH_USER.match(text):
        return _PATTERNS
    return _PATTERNS_CHINESE if text.startswith("用户") else ()


def _fits(name: str, value: str) -> bool:
    """Whether a home or an employer is a name: "a new flat" is not a value of `home`."""
    return name not in ("home", "employer") or not value[0].islower()
