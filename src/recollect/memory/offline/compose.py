"""Composes the text of an entry from what it states: grammatical by construction."""

from datetime import date

from .moments import Moment, format_day
from .rules import Language, attributes
from .statements import Person, Statement

_SINCE = {"en": " (since {})", "zh": "（{}起）"}
_ON = {"en": " ({})", "zh": "（{}）"}
_UNTIL = {"en": " (until {})", "zh": "（到{}）"}
_AS_OF = {"en": " (as of {})", "zh": "（截至{}）"}
_STOP = {"en": ".", "zh": "。"}
_IN_PLACE = ("{when}",)


def compose(statement: Statement) -> str:
    """The text of a statement, in the language in which it was said."""
    language, attribute = statement.language, attributes()[statement.attribute]
    texts = attribute.texts[language]
    template = texts[_form_of(statement)] if _form_of(statement) in texts else texts["text"]
    words = template.format(
        S=_subject(statement.subject, language),
        Ss=_possessive(statement.subject, language),
        v=_value(statement),
        r=statement.relation,
        when=_when(statement.moment, language) if statement.moment else "",
    )
    has_date = any(each in template for each in _IN_PLACE)
    return " ".join(words.split()) + ("" if has_date else _note(statement, language)) + _STOP[language]


def _value(statement: Statement) -> str:
    is_trip = (
        statement.attribute == "plan" and statement.operation == "end" and statement.value.startswith("去")
    )
    return f"{statement.value[1:]}之行" if is_trip else statement.value


def _form_of(statement: Statement) -> str:
    if statement.form == "died" or (statement.form and statement.operation == "set"):
        return statement.form
    return "text" if statement.operation in ("set", "move") else statement.operation


def _note(statement: Statement, language: Language) -> str:
    """When it began, ended, or was true."""
    if statement.operation == "end":
        day = words_of(statement.moment, language) or format_day(statement.said_on, language == "zh")
        return _ON[language].format(day)
    if statement.is_dated:
        return _AS_OF[language].format(format_day(statement.said_on, language == "zh"))
    if statement.until:
        return _UNTIL[language].format(words_of(statement.until, language))
    if statement.attribute == "injury" and statement.moment:
        return _ON[language].format(words_of(statement.moment, language))
    since = words_of(statement.moment, language)
    return _SINCE[language].format(since) if since else ""


def words_of(moment: Moment | None, language: Language) -> str:
    """A moment in words; empty without one."""
    if moment is None:
        return ""
    if not moment.words and moment.last is None:
        return _plain(moment, language)
    return (moment.words or moment.phrase).removeprefix("since ")


def _plain(moment: Moment, language: Language) -> str:
    day: date = moment.day
    if moment.precision == "day":
        return format_day(day, language == "zh")
    if language == "zh":
        return f"{day.year}年{day.month}月" if moment.precision == "month" else f"{day.year}年"
    return day.strftime("%B %Y") if moment.precision == "month" else str(day.year)


def _when(moment: Moment, language: Language) -> str:
    words = words_of(moment, language)
    if language == "zh":
        return words
    if moment.last:
        return f"from {words.removeprefix('from ')}"
    return f"on {words}" if moment.precision in ("day", "weekend") else f"in {words}"


def _subject(person: Person, language: Language) -> str:
    if person.is_user:
        return "用户" if language == "zh" else "The user"
    if not person.relation:
        return person.name
    if language == "zh":
        return f"用户的{person.relation}{person.name}"
    return f"The user's {person.relation} {person.name}".strip()


def _possessive(person: Person, language: Language) -> str:
    return _subject(person, language) + ("的" if language == "zh" else "'s")
