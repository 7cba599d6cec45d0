"""Standing instructions: how the user wants the assistant to behave from now on, not only this time.

`is_instruction` recognizes an entry about one. `instruction_in` finds one in what the user says, and tells it
in the third person.
"""

import re

from ..texts.remembered import remember

_TOLD = re.compile(
    r"^the user (?:always |never |only |also )*(?:wants|asks|expects|prefers|would like"
    r"|needs) (?:the assistant|(?:the )?(?:answers?|replies|responses|code|text|explanations?)"
    r"|to be (?:called|addressed|contacted|tagged)|(?:short|long|brief|more|less|fewer|simpl)\w* )"
    r"|^the user always wants\b|^the user wants (?:no|nothing|only|every|all)\b"
    r"|^用户(?:希望|要求|想让)(?:助手|以后|回答|代码|每次)",
    re.IGNORECASE,
)


def is_instruction(text: str) -> bool:
    """Whether an entry says how the user wants the assistant to behave."""
    return bool(_TOLD.match(text))


_POLITE = (
    r"(?:please |pls |plz |kindly |and |so |ok |okay |also |just |bot,? |but |then |now |actually,? "
    r"|could you |can you |would you |i(?:['’]d| would) like you to |i (?:want|need) you to |you (?:should"
    r"|must|can) )*"
)
_STANDING = re.compile(
    r"\b(?:always|never|from now on|in (?:the )?future|every time|each time|whenever|any ?more|anymore"
    r"|by default|by all means|in everything|everything you|unless i|in all|for all|all (?:your|my"
    r"|the) (?:answers|replies|code|responses|texts?|release notes)"
    r"|every (?:mistake|answer|reply|time|message)|going forward|until i say)\b",
    re.IGNORECASE,
)
_VERB = (
    r"(?:answer|reply|respond|write|explain|use|give|keep|call|address|speak|talk|correct|show|add|include"
    r"|avoid|skip|omit|stop|start"
    r"|stick|format|cite|quote|mention|ask|remind|tag|send|contact|tell|translate|describe|assume|suggest"
    r"|recommend|make|be|do|refer|put"
    r"|wrap|name|list|limit|treat|check|document|comment|provide|return|prefer|apologi[sz]e|repeat|end|let"
    r"|set|leave|offer|order)"
)
_IMPERATIVE = re.compile(
    rf"^{_POLITE}(?:from now on,? |in (?:the )?future,? |going forward,? )?{_POLITE}"
    rf"(?P<rest>(?:always |never |only |don['’]t |do not |no longer )?(?:ever |just |also )?{_VERB}\b.*)$",
    re.IGNORECASE,
)
# How an answer is given: a wish about this is meant for all answers.
_LANGUAGES = (
    "German|English|French|Spanish|Italian|Dutch|Chinese|Japanese|Polish|Portuguese|Russian|Turkish"
    "|Arabic|Hindi|Korean"
)
_STYLE = re.compile(
    rf"(?:answer|reply|respond|speak|talk|write)(?: to me| back| everything)? (?:in (?:{_LANGUAGES}|short"
    rf"|simple|plain|bullet|full|one)|briefly|shortly|formally|informally|concisely|more|less)"
    r"|(?:keep|make) (?:(?:it|your|the|all|everything|any) ?)?(?:answers?|repl(?:y|ies)|responses?"
    r"|explanations?|sentences|it|code|comments)? ?(?:short|brief|simple|concise|to (?:max|at most|under"
    r"|\w+ (?:lines|sentences|words))|under|below|max)"
    r"|be (?:more |less |very )?(?:brief|concise|honest|direct|formal|informal|polite|specific|short"
    r"|critical|casual)"
    rf"|use (?:british|american|metric|imperial|celsius|simple|plain|short|bullet|type hints|markdown"
    rf"|emojis|{_LANGUAGES}|\S+ instead of )"
    r"|(?:call|address) me\b|correct (?:every|all|any|my)\b|(?:cite|give|include|add"
    r"|provide) (?:me )?(?:your |the )?(?:sources|type hints|examples|docstrings|references|comments)\b"
    r"|describe .* instead of|use .* instead of|only use |avoid |stick to |skip the |tag me\b|limit ",
    re.IGNORECASE,
)
_OTHER_LANGUAGE = re.compile(
    rf"^(?P<language>{_LANGUAGES}) is (?:fine|ok|okay|good)(?: again| too| for me)?\b", re.IGNORECASE
)
_ONCE = re.compile(
    r"\b(?:this (?:time|one|text|sentence|code|function|file|once)|here|today|tonight|tomorrow"
    r"|(?<!from )now|yet|for (?:tonight|today|tomorrow|this)|the (?:second|first|third|last) (?:one"
    r"|paragraph|sentence|line))\b|:\s|\d{1,2}(?:am|pm)\b",
    re.IGNORECASE,
)
_NOT = re.compile(r"^(?:don['’]t|do not|please don['’]t) (?:ever )?", re.IGNORECASE)
_DONT = re.compile(
    r"^(?:explain|use|mention|ask|suggest|recommend|add|include|apologi[sz]e|write|call|send|assume|tell"
    r"|repeat|say|give|show|put|summari[sz]e|start|end|translate|speak|remind)\b",
    re.IGNORECASE,
)
_NO = re.compile(
    rf"^{_POLITE}(?P<what>(?:no(?: more)?|nothing|only|less|more|fewer|shorter|longer"
    rf"|simpler) (?!(?:problem|worries|idea|way|thanks|thank|need|one|doubt|wonder|matter|clue|longer|i "
    rf"|it |that |this |you |we |wait|entry|space|chance)\b)[^,.;:!?]{{2,60}}?)(?:,? (?:please|pls|plz"
    rf"|for me|though))+[.! ]*$",
    re.IGNORECASE,
)
_SHORTER = re.compile(
    r"^(?:no,? |nah,? |still |even |much |a bit |too long,? )*(?P<what>shorter|longer|simpler"
    r"|more (?:detail|detailed|formal|casual|concise)|less (?:formal|detail|text))(?:,? please)?[.! ]*$",
    re.IGNORECASE,
)
_AS_ALWAYS = re.compile(
    rf"^{_POLITE}(?P<what>(?:an?|the|no|my) [^,.;:!?]{{3,50}}?)(?:,? please)?,? as (?:always|usual)[.! ]*$",
    re.IGNORECASE,
)
_CALL_ME = re.compile(r"^(?:please |you can |just )*call me (?P<name>[A-Z][\w'’-]{1,30})", re.IGNORECASE)
_SELF = (
    (re.compile(r"\bI['’]m\b"), "they are"),
    (re.compile(r"\bI['’]ve\b"), "they have"),
    (re.compile(r"\bI am\b", re.IGNORECASE), "they are"),
    (re.compile(r"\bI was\b", re.IGNORECASE), "they were"),
    (re.compile(r"\bI\b"), "they"),
    (re.compile(r"\bi\b(?!\.)"), "they"),
    (re.compile(r"\bmyself\b", re.IGNORECASE), "themselves"),
    (re.compile(r"\bmine\b", re.IGNORECASE), "theirs"),
    (re.compile(r"\bmy\b", re.IGNORECASE), "their"),
    (re.compile(r"\b(?:me|us)\b", re.IGNORECASE), "them"),
    (re.compile(r"\bour\b", re.IGNORECASE), "their"),
    (re.compile(r"\bwe\b", re.IGNORECASE), "they"),
    (re.compile(r"\byour\b", re.IGNORECASE), "its"),
    (re.compile(r"\byou\b", re.IGNORECASE), "it"),
)
_TAIL = re.compile(r"(?:,? (?:please|pls|plz|thanks|thank you|ok|okay|haha|lol))+[.! ]*$", re.IGNORECASE)
_LONGEST = 160


@remember
def instruction_in(sentence: str) -> str | None:
    """What the user wants from now on, in the third person; `None` if it is no standing instruction."""
    if len(sentence) > _LONGEST or sentence.rstrip().endswith(("?", "？")):
        return None
    if match := _OTHER_LANGUAGE.match(sentence):
        return f"The user wants the assistant to answer in {match['language'].capitalize()}."
    if match := _CALL_ME.match(sentence):
        return f"The user wants to be called {match['name']}."
    if match := _AS_ALWAYS.match(sentence):
        return f"The user always wants {_told(match['what'])}."
    if match := _SHORTER.match(sentence):
        return f"The user wants {match['what'].lower()} answers."
    if match := _NO.match(sentence):
        return f"The user wants {_told(match['what'])}."
    return _imperative(sentence)


def _imperative(sentence: str) -> str | None:
    match = _IMPERATIVE.match(sentence)
    if match is None or _ONCE.search(sentence):
        return None
    rest = _TAIL.sub("", match["rest"]).rstrip(" .!")
    negated = _NOT.match(rest)
    if negated:
        rest = rest[negated.end() :]
        if not (_DONT.match(rest) or _STANDING.search(sentence)):
            return None
        return f"The user wants the assistant not to {_told(rest)}." if rest else None
    if not (_STANDING.search(sentence) or _STYLE.match(rest)):
        return None
    return f"The user wants the assistant to {_told(rest)}."


def _told(words: str) -> str:
    for pattern, told in _SELF:
        words = pattern.sub(told, words)
    words = _TAIL.sub("", words).strip(" ,.!")
    is_name = words[:2].isalpha() and words[:2].isupper()
    return words if is_name else words[:1].lower() + words[1:]


# --- Chinese ---

_CHINESE = re.compile(
    "^(?:请|麻烦|拜托)?(?:[你您])?(?P<what>(?:以后|今后|从现在(?:起|开始)|每次|总是|一律|永远|都)[^。！？?]{2,40}"
    "|(?:以后)?(?:不要|别|不用|请勿)(?:再|给我)?(?:解释|用|写|提|说|推荐|打电话|加|发|问)[^。！？?]{0,30}"
    "|(?:回答|解释|讲|说|写|用|注释|称呼|叫我)(?:得|要|都|请)?[^。！？?]{0,6}(?:一点|一些|简短|详细|中文|英文|简单|具体|我)[^。！？?]{0,30})[。！!]*$"
)


def chinese_instruction_in(sentence: str) -> str | None:
    """As `instruction_in`, for Chinese."""
    match = _CHINESE.match(sentence)
    if match is None or re.search("[?？:：]|吗|什么|怎么", sentence):
        return None
    what = re.sub("[我咱]们?", "用户", match["what"].rstrip("。！!，, "))
    return f"用户希望助手{what}。"
