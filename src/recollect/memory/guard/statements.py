"""Secrets that a person or a program names: "my password is …", `API_KEY=…`, "the card ending in …"."""

import math
import re
from collections import Counter

from .patterns import SecretPattern, secret

# What may stand between the name of a secret and its value.
_IS = (
    r"[\"'”’]?\s{0,9}(?::|=|=>|\bis(?:\s{1,9}(?:now|currently|just))?\b|\bwas\b|\bto\b|\bequals\b)"
    r"\s{0,9}[:=]?\s{0,9}[\"'“‘`]?"
)
_VALUE = r"(?P<secret>[^\s\"'“”‘’`,;()\[\]{}<>]{4,200}+)(?!\()"
_NAMED = (
    r"\b(?:api|access|secret|private|client|auth|encryption|signing|service|master|shared|session"
    r"|refresh|app|"
    r"bot|deploy|license|licence|webhook)[ _-]?(?:key|token|secret|password)(?:[ _-]?(?:id|value))?"
)
_WORDS_FOR_NOTHING = re.compile(
    r"(?:the|a|an|my|your|our|not|none|null|nil|true|false|same|wrong|right|correct|safe|secure|strong|weak|"
    r"good|bad|lost|stolen|gone|unknown|missing|needed|required|expired|invalid|valid|stored|saved|too"
    r"|very|so|"
    r"that|this|what|where|how|hard|easy|old|new|reset|changed|working|here|there|in|on|at|also|still|never|"
    r"always|something|nothing|anything|everything|empty|blank|protected|encrypted|hashed|\*+|x{4,}"
    r"|\.{3,}|…+)"
    r"[.!?。]*",
    re.IGNORECASE,
)

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # of a program, such as `request.form`


def looks_made_up(text: str) -> bool:
    """Whether a word looks like a password: no plain word, but with digits, signs or mixed case."""
    plain = text.rstrip(".!?。")
    if len(plain) < 4 or _WORDS_FOR_NOTHING.fullmatch(plain) or _IDENTIFIER.fullmatch(plain):
        return False
    inner = plain[1:]
    mixed = any(map(str.isupper, inner)) and any(map(str.islower, plain))
    return any(not each.isalpha() and each not in "-_'/." for each in plain) or mixed


def looks_random(text: str) -> bool:
    """Whether a text looks like a key: long, with digits, and with many different characters."""
    plain = text.rstrip(".!?。")
    if len(plain) < 8 or not any(map(str.isdigit, plain)) or not any(map(str.isalpha, plain)):
        return False
    counts = Counter(plain).values()
    return -sum(count / len(plain) * math.log2(count / len(plain)) for count in counts) >= 2.5


def is_no_placeholder(text: str) -> bool:
    """Whether a text is no word for a missing value, and no masked one."""
    return _WORDS_FOR_NOTHING.fullmatch(text.rstrip(".!?。")) is None


STATEMENTS: tuple[SecretPattern, ...] = (
    secret(
        "password in a URL",
        "://",
        r"\b[a-z][a-z0-9+.-]{1,30}://[^\s:/@\[\]]{0,100}:(?P<secret>[^\s@/\[\]]{1,200})@[\w.-]",
        any_case=True,
    ),
    secret(
        "basic authorization",
        "basic",
        r"\bauthorization:\s*basic\s+(?P<secret>[A-Za-z0-9+/]{8,2000}={0,2})",
        any_case=True,
    ),
    secret(
        "password",
        "password passcode passphrase passwd pwd",
        rf"\b(?:password|passcode|passphrase|passwd|pwd)(?:\s+(?:for|to|of|on"
        rf"|at)\s+[^.:=\n]{{1,60}}?)?{_IS}{_VALUE}",
        looks_made_up,
        any_case=True,
    ),
    secret(
        "password",
        "密码 口令 密碼",
        r"(?:密码|密碼|口令)(?:[^\n。，,:：=]{0,12})?(?:是|为|為|:|：|=)\s*[\"“「]?(?P<secret>(?!\[)[!-~]{4,64})",
        is_no_placeholder,
    ),
    secret(
        "password",
        "password",
        r"\bpassword\s+(?P<secret>(?=[^\s,;]*\d)(?=[^\s,;]*[A-Za-z])[^\s\"'“”,;()\[\]]{6,64})",
        looks_made_up,
        any_case=True,
    ),
    secret(
        "login",
        "login log sign",
        r"\b(?:log\s?in|sign\s?in)\s+(?:is|with|as|:)\s*[\w.@+-]{2,60}\s*(?:/|:"
        r"|\band\b)\s*(?P<secret>[^\s,;\[\]]{6,64})",
        looks_random,
        any_case=True,
    ),
    secret(
        "hexadecimal private key",
        "private key",
        r"\b(?:private|secret)[ _-]?key\W{1,6}(?:is\W{1,3})?(?P<secret>(?:0x)?[0-9a-f]{64})\b",
        any_case=True,
    ),
    secret("API key", "key token secret password", rf"{_NAMED}{_IS}{_VALUE}", looks_random, any_case=True),
    secret(
        "API key",
        "密钥 令牌 秘钥",
        r"(?:密钥|秘钥|令牌)(?:是|为|:|：|=)\s*(?P<secret>[!-~]{8,200})",
        looks_random,
    ),
    secret(
        "token",
        "token",
        rf"\btoken{_IS}(?P<secret>[A-Za-z0-9_+/=.-]{{16,2000}})",
        looks_random,
        any_case=True,
    ),
    secret(
        "assigned secret",
        "key secret token pass",
        r"\b[A-Z0-9_]{0,40}(?:API_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|_PASS|_KEY)\s?=\s?[\"']?"
        r"(?P<secret>[^\s\"'`;,\[\]]{6,500})",
        looks_random,
    ),
    secret(
        "PIN",
        "pin",
        r"\bpin(?:\s?(?:code|number))?(?:\s+(?:for|to|of|on)\s+[^.:=\d\n]{1,40}?)?"
        r"(?:\s+is|\s+was|\s?[:=])\s*(?P<secret>\d{4,8})\b(?!\s*(?:%|years|people|miles|km))",
        any_case=True,
    ),
    secret(
        "one-time code",
        "code 验证码",
        r"(?:\b(?:verification|security|one[- ]time|confirmation|authentication|2fa|sms|login|access"
        r"|backup|recovery"
        r"|gate|door|alarm|entry)[ -]code(?:\s+(?:for|to|of)\s+[^.:=\d\n]{1,40}?)?(?:\s+is|\s?[:=])\s*"
        r"|验证码(?:是|为|:|：)\s*)"
        r"(?P<secret>[\d -]{4,12}\d\b)",
        any_case=True,
    ),
    secret(
        "seed phrase",
        "phrase mnemonic",
        r"\b(?:seed|recovery|backup|secret|mnemonic)\s+(?:phrase|words?|mnemonic)(?:\s+(?:for"
        r"|of)\s+[^.:=\n]{1,40}?)?"
        r"(?:\s+(?:is|are)|\s?[:=])\s*[\"“']?(?P<secret>[a-z]{3,8}(?:[ ,]+[a-z]{3,8}){11,23})",
        any_case=True,
    ),
    # payments
    secret(
        "card number",
        "card visa mastercard amex",
        r"\b(?:card|visa|mastercard|amex|american express)(?:\s+(?:card|number|account|that|which|is|was"
        r"|of mine)){0,4}"
        r"\s*[,(]?\s*(?:ending|ends|finishing|last (?:four|4)(?: digits)?)(?:\s+(?:in|with|on|digits|are"
        r"|is|the)){0,4}\s*:?\s*"
        r"(?P<secret>\d{4})\b",
        any_case=True,
    ),
    secret(
        "card number",
        "last",
        r"\blast\s+(?:four|4)(?:\s+digits)?\b[^.\n\d]{0,60}\b(?:card|visa|mastercard|amex|account)"
        r"\b[^.\n\d]{0,30}?"
        r"(?P<secret>\d{4})\b",
        any_case=True,
    ),
    secret(
        "card number",
        "卡",
        r"(?:卡|卡号)[^。\n\d]{0,12}(?:尾号|末四位|后四位|最后四位)[^。\n\d]{0,6}(?P<secret>\d{4})(?!\d)",
    ),
    secret("card number", "尾号", r"尾号(?:为|是)?\s*(?P<secret>\d{4})(?!\d)"),
    secret("card number", "* x • ×", r"(?<!\w)(?:[*xX•×]{4}[ -]?){2,3}(?P<secret>\d{4})\b"),
    secret(
        "card security code",
        "cvv cvc csc security",
        r"\b(?:cvv2?|cvc2?|csc|card security code)(?:\s+(?:code|number))?(?:\s+(?:is"
        r"|was))?\s*[:=]?\s*(?P<secret>\d{3,4})\b",
        any_case=True,
    ),
    secret(
        "bank account",
        "account",
        r"\b(?:bank\s+)?account\s+(?:number|no\.?|nr\.?|#)(?:\s+(?:is"
        r"|was))?\s*[:=#]?\s*(?P<secret>\d[\d -]{4,18}\d)\b",
        any_case=True,
    ),
    secret(
        "routing number",
        "routing sort",
        r"\b(?:routing\s+(?:number|no\.?)(?:\s+is)?\s*[:=#]?\s*(?P<secret>\d{9})\b"
        r"|sort\s+code(?:\s+is)?\s*[:=]?\s*"
        r"\d{2}-?\d{2}-?\d{2}\b)",
        any_case=True,
    ),
)
