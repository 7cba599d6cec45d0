"""Splits Chinese sentences into clauses, each with its subject."""

import re
from collections.abc import Iterator

from .slots import Rewrite, slot_of

_KIN = (
    "(?:妈妈?|爸爸?|父亲|母亲|父母|爸妈|哥哥?|弟弟?|姐姐?|妹妹?|爷爷|奶奶|外公|外婆|姥姥|姥爷|老公|老婆|丈夫|妻子"
    "|太太|先生|儿子|女儿|孩子|男友|女友|男朋友|女朋友|朋友|同事|同学|老板|老师|邻居|室友|舅舅|叔叔|阿姨|姑姑"
    "|表[哥弟姐妹]|堂[哥弟姐妹]|家人|猫|狗)"
)
SOMEBODY = f"(?:我|用户)(?:们|家)?的?(?:最好的|最大的|最小的|好|大|小|亲|前|新|那个|这个)?{_KIN}"
"""Somebody who belongs to the user."""
# A clause without a subject begins with one of these: a time, an adverb or a verb.
_WITHOUT_SUBJECT = re.compile(
    "(?:(?:19|20)[0-9]{2}年|昨天|前天|今天|上周|上个月|去年|今年|刚刚|刚|最近|已经|终于|明天|下周|下个月|现在|目前|一直|平时"
    "|经常|每天|周末|小时候|从小|其实|也|还|同时"
    "|喜欢|讨厌|住在|在|有|是|去|买|搬|想|打算|准备|开始|学|换|改|养|不|属|对.{1,12}过敏|患|得了|怀孕|能|会|姓|叫|怕|没"
    "|需要|必须|单身|已婚|未婚|结婚|离婚|订婚|离异|来自|毕业于|从事|每|很|特别|非常|最|更|爱|做|当|吃|喝|读|信[0-9]{1,3}岁|[一二三四五六七八九十]{1,4}岁|严重)"
)
_BARE_KIN = re.compile(f"{_KIN}(?=对|有|是|也|都|在|住|患|今年|[0-9])")
_USER = re.compile("[我咱]|用户")
_OWNERS = {"我": "我", "咱": "我", "用户": "用户的"}
_ILL = re.compile("过敏|不耐受|患有|糖尿病|哮喘|癫痫|心脏病|高血压|怀孕|不能[吃喝碰]")
_LINK = "并且|而且|但是|可是|同时|另外|不过(?!敏)|并(?=对|有|在|是|患|不)"
_JOINT = re.compile(f"[，,；;、](?:{_LINK}|但|也(?=对|有|在|是|不)|还)?|{_LINK}")


def lacks_subject(clause: str) -> bool:
    """Whether a clause has no subject."""
    return bool(_WITHOUT_SUBJECT.match(clause))


def chinese_clauses_of(sentence: str, rewrite: Rewrite) -> list[str]:
    """The clauses of a sentence if one of them fills a slot or names an illness, else the whole sentence."""
    clauses = list(_split(sentence))
    if len(clauses) == 1 or not any(_stands(clause, rewrite) for clause in clauses):
        return [sentence]
    return [clause for clause in _with_subjects(clauses) if len(clause) > 1]


def with_subject(sentence: str, before: str, rewrite: Rewrite) -> str:
    """A sentence that fills a slot without a subject, with the subject of the sentence before."""
    if not lacks_subject(sentence) or _USER.search(sentence):
        return sentence
    other = re.match(SOMEBODY, before)
    return other.group() + sentence if other and slot_of(rewrite(sentence) or "") else sentence


def _stands(clause: str, rewrite: Rewrite) -> bool:
    return bool(_ILL.search(clause)) or slot_of(rewrite(clause) or "") is not None


def _split(sentence: str) -> Iterator[str]:
    """Split at commas, and at a conjunction or list mark that a clause follows."""
    start = 0
    for joint in _JOINT.finditer(sentence):
        rest = sentence[joint.end() :]
        if joint.group()[0] in "，,；;" or lacks_subject(rest) or _USER.match(rest):
            yield sentence[start : joint.start()]
            start = joint.end()
    yield sentence[start:]


def _with_subjects(clauses: list[str]) -> Iterator[str]:
    """Give each clause without a subject that of the clause before: the user, or somebody named there."""
    subject: str | None = "" if lacks_subject(clauses[0]) else None
    held = ""
    for clause in clauses:
        if subject in _OWNERS and _BARE_KIN.match(clause):
            clause = _OWNERS[subject] + clause
        if not lacks_subject(clause) or _USER.search(clause):
            subject = _subject_of(clause)
        elif subject is None:  # its subject is unknown
            held = f"{held}，{clause}"
            continue
        else:
            clause = subject + clause
        if held:
            yield held
        held = clause
    yield held


def _subject_of(clause: str) -> str | None:
    """The subject of a clause; `None` if it is unknown."""
    if other := re.match(SOMEBODY, clause):
        return other.group()
    user = _USER.match(clause)
    return user.group() if user else None
