"""Finds texts that try to steer the agent through its memory.

An entry is read by later prompts, so a text that gives orders to the agent would act in every conversation.
These are orders that no standing wish of a user needs: to drop earlier instructions, to become someone else,
to send data elsewhere, to hide something from the user, to tell the system prompt, or to look like a part of
the prompt. "Always answer in German" is none of them.
"""

import re
import unicodedata
from typing import NamedTuple

STEERING_REFUSED = (
    "the text tries to steer the agent, so it is not remembered;"
    " state a fact about the user, or a wish of theirs"
)
"""The reply to a model that wants to remember such a text."""
_LONGEST = 20_000  # characters that are read; an entry is far shorter
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060-\u2064\ufeff]")
_HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]|[\u200b\u2060-\u2064\ufeff]{2}")

_ORDERS = (
    r"(?:instructions?|directions?|rules?|prompts?|guidelines?|directives?|commands?|polic(?:y"
    r"|ies)|constraints?|guardrails?)"
)
_EARLIER = (
    r"(?:previous|prior|above|earlier|preceding|existing|former|original|initial|other|system"
    r"|safety|developer)"
)
_SEND = (
    r"(?:send|forward|e-?mail|post|upload|transmit|copy|bcc|cc|leak|exfiltrate|submit|report|share|deliver)"
)
_ELSEWHERE = (
    r"(?:https?://|www\.|[\w.+-]+@[\w-]+\.\w|webhook|\b(?:url|endpoint|server|address|account|channel) )"
)


class _Form(NamedTuple):
    reason: str
    hints: tuple[str, ...]
    """Texts in lower case, one of which occurs wherever the pattern matches. Others are not searched."""
    regex: re.Pattern[str]


def _form(reason: str, hints: str, *parts: str) -> _Form:
    return _Form(reason, tuple(hints.split()), re.compile("|".join(parts), re.IGNORECASE))


_FORMS = (
    _form(
        "override",
        "ignore disregard forget override bypass discard neglect skip follow instruction prompt"
        " 忽略 无视 忘记 忘掉 不要理会 跳过",
        rf"\b(?:ignore|disregard|forget|override|bypass|discard|neglect|skip|do not follow|don't follow"
        rf"|stop following)\b"
        rf"[^.\n]{{0,30}}\b{_EARLIER}\b[^.\n]{{0,30}}\b(?:{_ORDERS}|messages?|context|training|everything)\b",
        rf"\b(?:ignore|disregard|override|bypass|do not follow|don't follow)\b\s+(?:all|any|every|each"
        rf"|your|the|these|those)"
        rf"(?:\s+of)?(?:\s+(?:your|the|these|those))?\s+{_ORDERS}\b",
        r"\bforget (?:everything|all)(?: that)? (?:you (?:were|have been) (?:told|given|taught)|above"
        r"|before this)\b",
        r"\bnew (?:system )?(?:instructions?|prompt)\s*:",
        r"(?:忽略|无视|忘记|忘掉|不要理会|跳过)[^。\n]{0,12}(?:之前|以上|前面|先前|上述|所有|系统|原有)[^。\n]{0,8}(?:指令|指示|提示词?|规则|命令"
        r"|设定|限制)",
    ),
    _form(
        "role change",
        "you unrestricted uncensored jailbroken without dan mode 你",
        r"\byou (?:are|will be|must be) (?:now|henceforth|from now on) (?!(?:free|able|on|in|at|at the"
        r"|here|there|my favou?rite)\b)",
        r"\bfrom now on,? you (?:are|will be|must act|will act|must behave)\b",
        r"\b(?:act|behave|respond|pretend|roleplay)\b[^.\n]{0,30}\b(?:unrestricted|uncensored|jailbroken"
        r"|without (?:any )?"
        r"(?:restrictions?|limits?|filters?|rules)|DAN)\b",
        r"\byou are (?:now )?in (?:developer|debug|god|admin|root|jailbreak|dan|unrestricted) mode\b",
        r"\b(?:enable|enter|activate|switch to) (?:your |the )?(?:god|jailbreak|dan|unrestricted) mode\b",
        r"(?:从现在起|从现在开始|现在),?，?你(?:就|将)?是(?!不是)|你现在(?:就)?是(?:一个)?(?:没有限制|不受限制|DAN)",
    ),
    _form(
        "system prompt",
        "system developer hidden initial 系统提示 系统指令 初始指令",
        r"\b(?:reveal|print|repeat|show|output|display|tell|give|leak|expose|recite|write out|dump)"
        r"\b[^.\n]{0,25}"
        r"\b(?:your|the) (?:full |entire |complete |exact |hidden |secret |original |initial )*(?:system"
        r"|developer|hidden|initial) "
        r"(?:prompt|instructions?|messages?)\b",
        r"\b(?:the|your|this agent's|the assistant's|the agent's) system prompt (?:is|says|contains"
        r"|reads|states|must|should)\b",
        r"(?:输出|显示|告诉|泄露|重复|打印)[^。\n]{0,10}(?:系统提示词?|系统指令|初始指令)",
    ),
    _form(
        "exfiltration",
        "http www. @ webhook url endpoint server address account channel",
        rf"\b(?:from now on|always|whenever|every time|each time|in (?:every|each|all)|before (?:every"
        rf"|each)|after (?:every|each)|"
        rf"secretly|silently|quietly|also)\b[^.\n]{{0,80}}\b{_SEND}\b[^\n]{{0,80}}?{_ELSEWHERE}",
        rf"\b{_SEND}\b[^.\n]{{0,60}}\b(?:conversation|chat|history|messages?|password|credentials?"
        rf"|api keys?|secrets?|tokens?|"
        rf"personal data|user data|emails?|memor(?:y|ies))"
        rf"\b[^\n]{{0,40}}\bto\b[^\n]{{0,30}}?(?:https?://|www\.|[\w.+-]+@[\w-]+\.\w|webhook)",
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{0,300}[?&][^)\s]{0,300}\)",
        r"(?:总是|每次|始终|从现在起|从现在开始)[^。\n]{0,30}(?:发送|转发|上传|抄送|提交)[^。\n]{0,30}(?:https?://|[\w.+-]+@[\w-]+\.\w)",
    ),
    _form(
        "concealment",
        "not don't never without hide conceal keep 不要 别 切勿 禁止",
        r"\b(?:do not|don't|never|without)\b[^.\n]{0,20}\b(?:tell|telling|inform|informing|mention"
        r"|mentioning|reveal|alert|alerting|"
        r"notify|notifying|warn|warning|show)\b[^.\n]{0,25}\bthe (?:human|end[- ]user)\b",
        r"\b(?:do not|don't|never) (?:tell|inform|alert|notify|warn|let) the user\b",
        r"\bwithout (?:the user(?:'s)? (?:knowing|knowledge|consent|permission|noticing)|asking the user"
        r"|informing the user|telling the user)\b",
        r"\b(?:hide|conceal|keep) (?:this|these|it|that)\b[^.\n]{0,20}\bfrom the user\b",
        r"(?:不要|别|切勿|禁止)(?:告诉|告知|通知|提醒|让)用户",
    ),
    _form(
        "false authority",
        "instruction command order trusted authoritative definitive go-to verified authori grant approve"
        " confirm accept",
        r"\b(?:trust|obey|follow|execute|run)\b[^.\n]{0,20}\b(?:all|any|every|whatever)"
        r"\b[^.\n]{0,25}\b(?:instructions?|commands?|orders?)\b"
        r"[^.\n]{0,20}\b(?:from|in|by|of|inside|contained)\b",
        r"\b(?:remember|note|consider|treat|regard|cite|save)\b[^.\n]{0,80}\b(?:as|is) (?:a |an |the "
        r"|your )*(?:most )?"
        r"(?:trusted|authoritative|definitive|go-to) (?:and \w+ )?(?:source|authority|expert|reference"
        r"|citation)\b",
        r"\b(?:the user|this user|user) (?:is|has been|was) (?:now )?(?:an? )?(?:verified|authorized"
        r"|authorised|granted|pre-?approved|"
        r"trusted)\b[^.\n]{0,30}\b(?:admin(?:istrator)?|root|full|all|access|permissions?|approv\w+"
        r"|actions?|transactions?|refunds?)\b",
        r"\b(?:always|automatically)\b[^.\n]{0,15}\b(?:approve|authori[sz]e|grant|confirm|accept)"
        r"\b[^.\n]{0,25}\b(?:any|all|every|each)\b"
        r"[^.\n]{0,25}\b(?:request|transaction|transfer|payment|refund|withdrawal|action|access)s?\b",
    ),
    _form(
        "prompt markup",
        "< [ :",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)[^>\n]{0,20}\|?>"
        r"|\[/?INST\]|<<?/?SYS>>?",
        r"</?(?:system|assistant|developer|instructions?|memor(?:y|ies)|user_memory|recall|tool_(?:call"
        r"|result)|function_calls?)\b[^>\n]{0,60}>",
        r"^\s*(?:#{1,4}\s*)?(?:system|developer|assistant)\s*(?:message|prompt|note|override"
        r"|instruction)?\s*:",
        r"<!--",
    ),
)


def find_steering(text: str) -> str | None:
    """Why a text counts as an attempt to steer the agent, such as `override`; `None` if it does not."""
    shown = text[:_LONGEST]
    if _HIDDEN.search(shown):
        return "hidden text"
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", shown))
    lowered = plain.lower()
    found = (form for form in _FORMS if any(hint in lowered for hint in form.hints))
    return next((form.reason for form in found if form.regex.search(plain)), None)
