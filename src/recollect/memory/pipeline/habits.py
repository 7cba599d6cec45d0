"""Words a habit: if "The user went running" is said of three Sundays, the user "goes running on Sundays".

Only verbs and forms that are known are worded. For all others there is no habit.
"""

import re
from datetime import date

from ..entry import Entry
from ..texts.similarity import gist_of
from ..texts.synonyms import MONTHS

_WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_WEEKDAYS_CHINESE = "一二三四五六日"
# Past forms with their present forms.
_PRESENT = dict(
    re.findall(
        r"(\w+):(\w+)",
        (
            "went:goes ran:runs swam:swims had:has met:meets took:takes did:does ate:eats saw:sees rode:rides"
            " made:makes taught:teaches drove:drives sang:sings drank:drinks slept:sleeps held:holds"
            " played:plays visited:visits attended:attends cooked:cooks walked:walks trained:trains"
            " worked:works called:calls cleaned:cleans climbed:climbs volunteered:volunteers painted:paints"
            " gardened:gardens rowed:rows bowled:bowls helped:helps joined:joins hiked:hikes baked:bakes"
            " cycled:cycles danced:dances practiced:practices practised:practises skated:skates"
            " watched:watches jogged:jogs studied:studies fished:fishes"
        ),
    )
)
_MONTH = "|".join(MONTHS)
_WHEN = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTH})\b\.?(?:,? \d{{4}})?"
    rf"|\b(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b"
    r"|\b\d{4}-\d\d-\d\d\b|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]"
    r"|\b(?:(?:last |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|today|tonight|earlier|again"
    r"|(?:this|in the) (?:morning|afternoon|evening))\b|[今昨前]天|今[早晚]|又",
    re.IGNORECASE,
)
_DANGLING = re.compile(r"(?:\s*(?:[,，;(（)）]|\bon\b|\bat\b|\bthe\b))+\s*(?=[.。]?\s*$)|[(（]\s*[)）]")
_ENGLISH = re.compile(r"the user (?P<verb>[a-z]+)(?P<rest>(?: [^.;]{1,80})?)\.?", re.IGNORECASE)
_CHINESE = re.compile(r"[,，\s]*用户(?P<rest>[^不没，,。；]{1,30}?)了?。?")


def happened_on(entry: Entry) -> date | None:
    """The day of an event; `None` if it is not known to the day."""
    try:
        return date.fromisoformat(entry.valid_from or "") if entry.content_type == "event" else None
    except ValueError:
        return None


def undated(entry: Entry) -> str:
    """The text of an event without its date and the words for it."""
    text = gist_of(entry.text)
    phrase = entry.data.get("phrase")
    if isinstance(phrase, str) and phrase:
        text = text.replace(phrase, " ")
    plain = _DANGLING.sub("", " ".join(_WHEN.sub(" ", text).split()))
    return re.sub(r"\s+(?=[.,。])", "", plain).strip(" ,，")


def word_habit(entry: Entry) -> str | None:
    """The habit that an event is one of, if it happens every week; `None` if it cannot be worded."""
    day = happened_on(entry)
    if day is None:
        return None
    text = undated(entry)
    if english := _ENGLISH.fullmatch(text):
        verb = _PRESENT.get(english["verb"].lower())
        return f"The user {verb}{english['rest']} on {_WEEKDAYS[day.weekday()]}." if verb else None
    if chinese := _CHINESE.fullmatch(text):
        return f"用户每周{_WEEKDAYS_CHINESE[day.weekday()]}{chinese['rest']}。"
    return None
