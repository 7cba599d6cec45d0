"""What the wording of a question says about its answer: who is meant, what kind of answer, how many answers.

Pure functions over a text, in English and Chinese. Nothing here looks at a corpus.
"""

import re

from ..texts.terms import stem, terms
from .dates import named_dates

_FIRST_PERSON = re.compile(
    r"\b(?:i|my|me|mine|myself|we|our|us|ich|mein(?:e[mnrs]?)?|mich|mir|wir|uns(?:er\w*)?|je|moi|mon|ma|mes|nous"
    r"|notre|nos|yo|mi|mis|nosotros|vivo|tengo|soy|hago|puedo|io|mio|mia|eu|meu|minha|tenho|moro)\b|\bj['’]"
    r"|\b(?:я|меня|мне|мо[йяеёию]|мо(?:его|ему|ей|их|им)|мы|нас|наш\w*)\b"
    r"|我|咱|私|僕|俺|わたし|ぼく|(?<!\w)(?:나|난|내|제|저|우리)(?:가|는|를|의|에게|한테)?(?!\w)"
    r"|(?<!\w)(?:أنا|لي|عندي|لدي|أسكن|أعيش|أعمل|أدرس|أستطيع|أحب|أخي|أختي|أمي|أبي|(?!ال)\w{2,}تي)(?!\w)",
    re.IGNORECASE,
)
_THIRD_PERSON = re.compile(
    r"\b(?:he|she|him|her|hers|his|er|ihm|ihn|elle|lui|él|ella|lei|ele|ela|он|она|его|её|ему|ей)\b"
    r"|(?<!其)[他她](?!们|們)|彼|(?<!\w)그(?:녀\w?|는|가|의)(?!\w)",
    re.IGNORECASE,
)
_HOW_TO = re.compile(r"\bhow (?:do|can|could|should|would) (?:i|we)\b", re.IGNORECASE)
_TELL_ME = re.compile(r"\b(?:tell|give|show) me\b", re.IGNORECASE)
# "you" is the assistant where it did or said something. In "can you tell me …" it is only asked to answer.
_SAID = (
    r"said|told|suggested|recommended|mentioned|gave|given|wrote|written|explained|provided|listed|proposed"
    r"|advised|showed|shown|described|offered|helped|outlined|answered"
)
_GIVEN = "answer|suggestion|advice|explanation|recommendation|list|code|reply|response|message|example|plan"
_ASSISTANT_ACTED = re.compile(
    r"\b(?:did|have|had|were|was) you\b"
    rf"|\byou(?:['’]ve| have| had|['’]d)? (?:\w+ly )?(?:{_SAID})\b"
    rf"|\byour (?:\w+ )?(?:{_GIVEN})s?\b"
    r"|你(?:之前|上次|刚才|以前)?(?:说|建议|推荐|提到|告诉|给)",
    re.IGNORECASE,
)
_SUMMARY = re.compile(r"\b(?:summar\w+|overview|recap)\b|总结|概括|概述", re.IGNORECASE)
_SEVERAL = re.compile(
    r"^\W*(?:(?:what|which)(?: [\w'’-]+){0,3}? [\w'’-]+(?<!s)s (?:has|have|does|do|are|did|were)\b"
    r"|how many\b|what (?:are|were)\b|in what ways\b|(?:what|which|where|who)\b.{0,60}?\b(?:has|have)\b)"
    r"|\b(?:list|in order|order in which|all (?:the|of|my)|how many|throughout|across|every(?:thing)?)\b"
    r"|哪些|哪几|[几多]少?次|都有|所有|全部|列出",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\b(?:recommend\w*|suggest\w*|advi[cs]e|ideas?|tips|should i|what are some|best way"
    r"|what(?:['’]s| is| are) (?:an? |the |some )?(?:good|best)|how (?:can|should|would|could) i"
    r"|where (?:can|should) i|which \w+ should"
    r"|i(?:['’]m| am) (?:looking|planning|thinking|about|considering)|i (?:need|want))\b"
    r"|推荐|建议|怎么办|应该|帮我",
    re.IGNORECASE,
)
_ALL = re.compile(
    r"\b(?:know|remember|recall|learned|learnt|stored|saved)\b[^.?!]{0,30}\b(?:about|of) (?:me|us|the user)\b"
    r"|\b(?:everything|anything|all) (?:\w+ ){0,3}about (?:me|us|the user)\b"
    r"|\btell me about (?:me|myself)\b|\bwho am i\b"
    r"|我是谁|(?:知道|记得|记住|了解)(?:关于)?(?:我|我们)(?:什么|哪些|多少)|关于我的(?:一切|所有|全部)",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"^\W*(?:when|how long|since when|(?:in |on |at )?(?:what|which) (?:date|day|month|year|time|week))\b"
    r"|什么时候|何时|哪[一]?[天年月]|几[月号]|多久",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"\b(?:where|who|which|names?|named|called|titles?|countr(?:y|ies)|cit(?:y|ies)|states?|books?|movies?|films?|"
    r"songs?|bands?|brands?|games?|places?)\b|谁|哪里|哪儿|叫什么|名字",
    re.IGNORECASE,
)
_NEWEST = re.compile(
    r"\b(?:latest|newest|most recent|recently|currently|current|nowadays|these days|last time)\b"
    r"|最近|最新|现在|目前|上次",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:before|used to|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|at first|initial(?:ly)?"
    r"|when (?:did|was|were|had)|how long|since when|until when|in the past|back then|ago"
    r"|last (?:year|month|week)|chang(?:e[ds]?|ing)|no longer|any ?more|over time|corrected)\b"
    r"|\b(?:früher|vorher|zuvor|damals|ursprünglich|zuerst|wann|geändert|avant|autrefois|auparavant|d'abord"
    r"|quand|antes|solía|anteriormente|cuándo|prima|una volta|quando)\b|раньше|прежде|когда"
    r"|以前|之前|从前|從前|[过過]去|曾|原[本来來]|一[开開]始|起初|[当當][时時]|[后後][来來]|前[后後]|[变變]化"
    r"|[什甚][么麼][时時]候|前は|예전|전에|언제|سابقا|قبل|متى",
    re.IGNORECASE,
)


_THE_USER_OWNS = re.compile(r"\bthe user['’]s\b", re.IGNORECASE)
_THE_USER = re.compile(r"\bthe user\b", re.IGNORECASE)


def as_user(text: str) -> str:
    """A question about "the user" as the user asks it, so that it is compared with what the user said."""
    mine = _THE_USER.sub("I", _THE_USER_OWNS.sub("my", text))
    return mine.replace("用户", "我").replace("用戶", "我")


def asks_past(text: str) -> bool:
    """Whether a question is about the past, a change or a time, and not about what holds now."""
    return _PAST.search(asked_part(text)) is not None or bool(named_dates(text)[1])


def meant_role(text: str) -> str | None:
    """The role whose messages a question is about, if it says so: "I" is the user, "you said" the assistant.

    A summary is about both.
    """
    if _SUMMARY.search(text):
        return None
    if _ASSISTANT_ACTED.search(text):
        return "assistant"
    return "user" if _FIRST_PERSON.search(_TELL_ME.sub(" ", text)) else None


def asks_about_person(text: str) -> bool:
    """Whether a question is about the user, or about somebody who must be known: "Where does she live?".

    "How do I sort a list?" is about neither.
    """
    return _THIRD_PERSON.search(text) is not None or meant_role(_HOW_TO.sub(" ", text)) == "user"


def asks_advice(text: str) -> bool:
    """Whether a question asks for advice, which depends on what the user prefers and on no word of it."""
    others = (_ASSISTANT_ACTED, _SUMMARY, _SEVERAL_MENTIONED)
    return bool(_ADVICE.search(text)) and not any(pattern.search(text) for pattern in others)


def asks_several(text: str) -> bool:
    """Whether the answer may be spread over several messages."""
    return bool(_SEVERAL.search(text) or _SUMMARY.search(text))


def asks_all(text: str) -> bool:
    """Whether a question asks for all that is known about the user: "What do you know about me?"."""
    return _ALL.search(text) is not None


def asks_when(text: str) -> bool:
    """Whether the answer is a time."""
    return _WHEN.search(text) is not None


def asks_name(text: str) -> bool:
    """Whether the answer is a name or a title."""
    return _NAME.search(text) is not None


def asks_newest(text: str) -> bool:
    """Whether the answer is the newest of several."""
    return _NEWEST.search(text) is not None


# --- the frame around a question ---

_TALKED = (
    r"(?:brought up|bring up|mention(?:ed)?|discuss(?:ed)?|talk(?:ed)? about|cover(?:ed)?|said|say|told|tell)"
)
_SEVERAL_MENTIONED = re.compile(rf"\b(?:order in which|in order|list)\b.*\b{_TALKED}\b", re.IGNORECASE)
_OPENING = re.compile(
    r"^\W*(?:(?:hi|hello|hey|ok|okay|so|please|thanks)\b\W*)*"
    r"(?:(?:can|could|would|will) you(?: please)? |please |i(?:['’]d| would) like (?:you )?to "
    r"|do you (?:remember|recall|know) |remind me (?:of |about )?|tell me (?:about )?|let me know )+"
    r"(?:(?:tell|give|show|list|remind|walk|help|provide|write)(?: me)?(?: through| about| with| of| out)? "
    r"|summari[sz]e |describe |recap |outline )?",
    re.IGNORECASE,
)
_MENTIONED = re.compile(
    r"\b(?:(?:the order (?:in which|that)|how|everything) +)?(?:have |had |did )?"
    rf"(?:i|we|you)(?:['’]ve| have| had)? (?:ever )?{_TALKED}(?: (?:me|you))?(?: about)?\b",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r",? *\b(?:throughout|across|over|during|in) (?:all )?(?:of )?(?:our|my|the|these|your)? *"
    r"(?:(?:past|previous|earlier|different|many) +)?"
    r"(?:conversations?|discussions?|chats?|sessions?|talks?)\b(?: together)?"
    r"|,? in order\b|\bmention only(?: and only)? \w+ items?\.?|\bso far\b",
    re.IGNORECASE,
)
_FRAME_WORDS = (
    "conversation conversations discuss discussed discussion discussions mention mentioned mentioning summary"
    " summarize summarise summarized overview recap comprehensive throughout remind remember recall told tell"
    " aspect aspects various different including please provide want know ask asked asking"
)
FRAME_TERMS = frozenset(map(stem, _FRAME_WORDS.split()))
"""Terms about the conversation and the answer, and not about what is searched."""


def without_frame(text: str) -> str:
    """A question without the words around it: "Can you remind me what I said about tea?" is about tea.

    The text stays as it is if too little would be left.
    """
    spaced = " ".join(text.split())  # a run of spaces would take `_SETTING` a time quadratic in its length
    left = _MENTIONED.sub(" ", _SETTING.sub(" ", _OPENING.sub("", spaced, count=1)))
    left = " ".join(left.split())
    return left if len(terms(left)) > 1 else text


# --- the question in a long text ---

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*")
_IS_QUESTION = re.compile(r"[?？؟]|[吗嗎呢]\s*$")
_SHORT = 60  # characters of a text that is taken as a whole
_LONGEST_PART = 800
_LAST_SENTENCES = 3


def asked_part(text: str) -> str:
    """The questions among the sentences of a text, or else its last sentences. A short text is all of it."""
    sentences = [each for each in _SENTENCE.findall(text) if each.strip()] if len(text) > _SHORT else []
    if len(sentences) < 2:
        return text
    asked = [sentence for sentence in sentences if _IS_QUESTION.search(sentence)]
    return " ".join(" ".join(asked or sentences[-_LAST_SENTENCES:]).split())[-_LONGEST_PART:] or text
