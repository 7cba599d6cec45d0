"""Chinese: the patterns that classify a sentence, rewriting to the third person, and dates."""

import re
from collections.abc import Callable
from datetime import date, timedelta

from ..facts.chinese_clauses import SOMEBODY, lacks_subject
from .moments import (
    CHINESE_NUMBER,
    Moment,
    Precision,
    Tense,
    chinese_number_of,
    first_of,
    format_date,
    format_span,
    monday_of,
    resolve,
)
from .sentences import around_speech

INJECTION = re.compile(
    "(?:忽略|无视|忘记|忘掉|绕过|不要遵守).{0,20}(?:指令|规则|提示|设定|说明|要求|限制)|^\\W{0,3}(?:系统"
    "|助手|开发者)(?:提示|消息)?[:：]"
    "|(?:写入|存入|加入|添加到|保存到|记录到).{0,10}记忆|(?:记住|保存|记录|存储).{0,12}(?:管理员"
    "|最高权限|超级用户)"
    "|你现在是|从现在(?:起|开始)，?你|(?:扮演|假装)|新的?指令|开发者模式|越狱"
)
ORDER = re.compile("^(?:请)?(?:保存|存储|记录|添加|写入|授予|删除|设置)")
# What follows such a request is a text to work on, not a statement of the user.
_WORK = "(?:翻译|润色|改写|校对|总结|概括|修改|缩写|扩写|重写|改错|纠正语法|检查语法|改得|改成)"
_ASKED = "(?:请|麻烦|帮我|帮忙|你|您|能|能否|能不能|可以|可不可以|给我)*(?:[把将].{1,20}?)?"
WORK = re.compile(f"^{_ASKED}{_WORK}(?:[：:]|成|为|一下|这|下面|以下)")
WORK_BELOW = re.compile(
    f"^{_ASKED}{_WORK}[^。！？?：:]{{0,20}}[：:]|^{_ASKED}(?<=[面下段句话文子]){_WORK}|^{_ASKED}{_WORK}(?:一下)?(?:这|下面|以下)"
)
WORK_ABOVE = re.compile(f"^{_ASKED}{_WORK}(?:一下)?(?:这|上面|以上)|^{_ASKED}(?<=[面上段句话文子]){_WORK}")
HYPOTHETICAL = re.compile("^(?:如果|假如|假设|假使|要是|倘若|若是|假定|万一)(?!.*就好了)|如果我")
FLEETING = re.compile(
    "^(?:我|现在)*(?:好|很|有点|有些|太|快)?(?:饿|渴|困|冷|热)(?:了|死了|坏了|啊|呀)*[。！!]*$"
)
PLAIN = re.compile(
    "^我(?:现在|目前|也|还|一直|平时|经常|从小|特别|非常|很|最|不|没|更)*(?:是|有|叫|姓|属|对.{1,12}过敏|喜欢|讨厌|爱|怕"
    "|住|养|吃|喝|会|想(?:学|去|要|买|当|成为)|在.{1,20}(?:当|做|工作|上班|上学|读)|不?过敏|希望|信)"
    f"|^{SOMEBODY}(?:也|都|现在|今年|今年已经|不)*(?:是|叫|在|住|有|喜欢|对)"
    "|^在.{1,20}(?:当|做|工作|上班|上学|读)"
)
LEFT = re.compile(
    "我(?:已经|刚刚?|最近|上周|上个月|去年|昨天)*"
    "(?:(?:从.{1,20})?(?:辞职|离职|退休|被裁|被解雇|辞掉)|离开了?.{1,20}公司)"
)
WISH = re.compile("我(?:们)?(?:很|真|特别|非常|一直|也|还|好)*(?:想(?!到|起)|希望|梦想|盼望|渴望)")
RECALLED = re.compile(
    "(?:如|像|正如|就像)?[你您](?:刚才|之前|刚刚)?(?:说的|提到的|说得对|记得|说对)|[你您]说得?没错"
)
JUNK = re.compile(
    "^(?:谢谢|多谢|感谢|不客气|没关系|再见|拜拜|晚安|早安|好的|好啊|太好了|太棒了|真棒|真好|真不错|不错"
    "|恭喜|加油|祝[你您]|希望[你您]|哈哈|原来如此"
    "|[你您]好|[你您]的?|请|帮我|给我|告诉|听起来|看起来|那真|那太|这真|这太|我(?:知道了|明白|同意|懂了"
    "|理解)|为[你您])"
)
QUESTION = re.compile(
    "[?？]\\W*$|(?:吗|呢|么)[。！.!]?$|^(?:什么|怎么|为什么|哪里|哪个|谁|请问|能不能|可不可以|是不是|有没有)"
)
MIND = re.compile(
    "喜欢|喜爱|热爱|讨厌|不爱|爱(?:吃|喝|看|听|玩)|想(?:要|去|学|当|买|做|成为|吃|家|[妈爸]|念)|就好了|希望|梦想|愿望|觉得"
    "|认为|感到|感觉|相信|开心|高兴|难过|伤心|生气|担心|害怕|焦虑"
    "|紧张|兴奋|期待|后悔|失望|孤独|压力|感激|骄傲|自豪|满意|无聊|烦|偏好|更喜欢|最爱|最喜欢|受不了"
    "|舍不得|怀念|想念|打算|计划"
)
DONE = re.compile("了(?!解)|(?<![超经])过(?![敏程去年节于分度来])|曾经?|刚(?:刚|才)?")
OVER = re.compile("不[^，。]{1,20}了|不再|再也不|(?:没|没有|未)[^，。]{0,8}过|戒了?[烟酒糖]")
_FIRST = re.compile("我|咱")
_SPEAKING_TO = re.compile("[你您]")
_WORDS = (
    (re.compile("我自己"), "用户自己"),
    (re.compile("我们的|咱们的|咱们|我们"), "用户等人"),
    (re.compile("我家"), "用户家"),
    (re.compile("我(?=[妈爸哥弟姐妹爷奶老妻丈女男儿])"), "用户的"),
    (re.compile("[我咱]"), "用户"),
)
_AND_OTHERS = "用户等人"


# --- rewriting to the third person ---


def is_first_person(sentence: str) -> bool:
    """Whether the speaker speaks of themselves."""
    return bool(_FIRST.search(sentence))


def speaks_to_somebody(sentence: str) -> bool:
    """Whether the sentence addresses the listener."""
    return bool(_SPEAKING_TO.search(sentence))


def to_third_person(sentence: str) -> str | None:
    """The sentence in the third person; `None` if it cannot be rewritten cleanly."""
    return around_speech(sentence, _rewrite)


def _rewrite(sentence: str) -> str | None:
    if speaks_to_somebody(sentence):
        return None
    if not is_first_person(sentence):
        return f"用户{sentence}" if lacks_subject(sentence) else None
    for pattern, replacement in _WORDS:
        sentence = pattern.sub(replacement, sentence)
    return sentence.replace(f"{_AND_OTHERS}的", "他们的")


def quote(sentence: str) -> str:
    """The sentence as a literal quote of the user."""
    inner = sentence.replace("“", "‘").replace("”", "’")
    return f"用户说：“{inner}”"


# --- dates ---

Found = tuple[date, Precision, str] | tuple[date, Precision, str, date] | None
"""The first day, its precision, the date in words, and optionally the last day."""

_WEEKDAYS = {character: number for number, character in enumerate("一二三四五六日")} | {"天": 6}
_SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
_YEARS_AWAY = {"前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
_UNITS: dict[str, Precision] = {"天": "day", "日": "day", "月": "month", "年": "year"}
_TO_COME = re.compile("[要会将打算准备计划下明后]")
_TENSES: tuple[Tense, Tense] = ("past", "future")
_MOST = 3  # dates of a sentence


def _named_day(match: re.Match[str], said_on: date) -> Found:
    phrase = {"昨晚": "昨天", "今晚": "今天", "今早": "今天", "明晚": "明天"}.get(
        match.group(), match.group()
    )
    return _found_date(resolve(phrase, True, said_on, "past"), "day")


def _weekday(match: re.Match[str], said_on: date) -> Found:
    weeks = {"上上": -2, "上": -1, "下": 1, "下下": 2}.get(match["which"] or "", 0)
    day = monday_of(said_on) + timedelta(weeks=weeks, days=_WEEKDAYS[match["weekday"]])
    if not match["which"] and day >= said_on and DONE.search(match.string):
        day -= timedelta(weeks=1)
    return _found_date(day, "day")


def _week(match: re.Match[str], said_on: date) -> Found:
    weeks = {"上上": -2, "上": -1, "下": 1, "下下": 2}.get(match["which"], 0)
    if match["end"]:
        return (
            monday_of(said_on) + timedelta(weeks=weeks, days=5),
            "weekend",
            format_span("weekend", weeks, said_on, True),
        )
    return monday_of(said_on) + timedelta(weeks=weeks), "week", format_span("week", weeks, said_on, True)


def _month(match: re.Match[str], said_on: date) -> Found:
    months = {"上上": -2, "上": -1, "下": 1, "下下": 2}.get(match["which"], 0)
    phrase = f"{abs(months)} months ago" if months < 0 else f"in {months} months"
    day = resolve(phrase, False, said_on, "past") if months else said_on
    return _found_date(day, "month")


def _day_of_month(match: re.Match[str], said_on: date) -> Found:
    found = _month(match, said_on)
    return found and _found_date(found[0].replace(day=chinese_number_of(match["day"])), "day")


def _ago(match: re.Match[str], said_on: date) -> Found:
    number, unit = chinese_number_of(match["number"]), match["unit"]
    is_past = match["side"] in ("前", "以前", "之前")
    if unit in ("周", "星期", "礼拜"):
        weeks = -number if is_past else number
        return monday_of(said_on) + timedelta(weeks=weeks), "week", format_span("week", weeks, said_on, True)
    precision = _UNITS[unit]
    phrase = f"{number} {precision}s ago" if is_past else f"in {number} {precision}s"
    return _found_date(resolve(phrase, False, said_on, "past"), precision)


def _whole_date(match: re.Match[str], said_on: date) -> Found:
    month, day = chinese_number_of(match["month"]), match["day"]
    year = _year_of(match["year"], said_on)
    number = chinese_number_of(day) if day else 1
    if not 1 <= month <= 12 or not 1 <= number <= 31:
        return None
    if year:
        resolved: date | None = date(year, month, number)
    else:
        resolved = _nearest(f"{number} {_ENGLISH[month]}", match.string, said_on)
    found = _found_date(resolved, "day" if day else "month")
    return found and (*found[:2], "" if match["year"] and match["year"].isdigit() else found[2])


def _nearest(phrase: str, sentence: str, said_on: date) -> date | None:
    """The past day if the sentence says it is done, the future day if it is planned, else the nearer one."""
    past, future = (resolve(phrase, False, said_on, tense) for tense in _TENSES)
    if past is None or future is None or DONE.search(sentence):
        return past
    return future if _TO_COME.search(sentence) or future - said_on < said_on - past else past


def _days(match: re.Match[str], said_on: date) -> Found:
    """From a day to another one."""
    found = _whole_date(match, said_on)
    if found is None:
        return None
    first, month = found[0], match["last_month"]
    last = first.replace(
        month=chinese_number_of(month) if month else first.month, day=chinese_number_of(match["last_day"])
    )
    last = last if last >= first else last.replace(year=last.year + 1)
    return first, "day", found[2] and f"{found[2]}至{format_date(last, 'day', True)}", last


def _year(match: re.Match[str], said_on: date) -> Found:
    year = _year_of(match["year"], said_on)
    if match["season"]:
        return date(year, _SEASONS[match["season"]], 1), "season", f"{year}年{match['season']}天"
    found = _found_date(date(year, 1, 1), "year")
    return found and (*found[:2], "" if match["year"].isdigit() else found[2])


def _year_of(named: str | None, said_on: date) -> int:
    if not named:
        return 0
    return int(named) if named.isdigit() else said_on.year + _YEARS_AWAY[named]


def _found_date(day: date | None, precision: Precision) -> Found:
    if day is None:
        return None
    return first_of(day, precision), precision, format_date(day, precision, True)


_ENGLISH = dict(
    enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
)
_WHICH = "(?P<which>上上|下下|上|下|这|本)"
_MONTH = "(?:[0-9]{1,2}|十[一二]?|[一二三四五六七八九])"
_DATE = f"(?:(?P<year>(?:19|20)[0-9]{{2}}|前年|去年|今年|明年)年?)?(?P<month>{_MONTH})月"
_LAST = f"(?:(?P<last_month>{_MONTH})月)?(?P<last_day>{CHINESE_NUMBER})"
_Resolver = Callable[[re.Match[str], date], Found]
_PATTERNS: tuple[tuple[re.Pattern[str], _Resolver], ...] = (
    (re.compile(f"{_DATE}(?P<day>{CHINESE_NUMBER})[日号](?:到|至|[-—~～]){_LAST}[日号]"), _days),
    (re.compile(f"{_DATE}(?:份|(?P<day>{CHINESE_NUMBER})[日号])?"), _whole_date),
    (re.compile("大前天|前天|昨天|昨晚|今天|今晚|今早|明天|明晚|大后天|后天"), _named_day),
    (re.compile(f"{_WHICH}?个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])(?![个年月])"), _weekday),
    (re.compile(f"{_WHICH}个?(?:周|星期|礼拜)(?P<end>末)?"), _week),
    (re.compile(f"{_WHICH}个?月(?P<day>{CHINESE_NUMBER})[日号]"), _day_of_month),
    (re.compile(f"{_WHICH}个?月"), _month),
    (
        re.compile(
            f"(?P<number>{CHINESE_NUMBER})个?(?P<unit>天|日|周|星期|礼拜|月|年)(?P<side>以前|之前|前"
            f"|以后|之后|后)"
        ),
        _ago,
    ),
    (
        re.compile(
            "(?P<year>(?:19|20)[0-9]{2}(?=年)|前年|去年|今年(?![0-9一二三四五六七八九十]{1,3}岁)|明年"
            "|后年)年?(?:的?(?P<season>[春夏秋冬])[天季])?"
        ),
        _year,
    ),
)


def chinese_moments_in(sentence: str, said_on: date) -> list[Moment]:
    """The first dates in a Chinese sentence, in their order."""
    found: list[Moment] = []
    for pattern, resolver in _PATTERNS:
        for match in pattern.finditer(sentence):
            if any(match.start() < other.end and other.start < match.end() for other in found):
                continue
            moment = _moment(match, _resolved(resolver, match, said_on))
            found += [moment] if moment else []
    return sorted(found, key=lambda moment: moment.start)[:_MOST]


def _resolved(resolver: _Resolver, match: re.Match[str], said_on: date) -> Found:
    try:
        return resolver(match, said_on)
    except (OverflowError, ValueError):  # before the first year, or after the last
        return None


def _moment(match: re.Match[str], found: Found) -> Moment | None:
    if not found:
        return None
    before = match.string[max(0, match.start() - 1) : match.start()]
    after = match.string[match.end() : match.end() + 3]
    is_since = before in ("从", "自") or after.startswith(("以来", "起", "开始"))
    last = found[3] if len(found) > 3 else None
    return Moment(match.start(), match.end(), match.group(), *found[:3], is_since, last)
