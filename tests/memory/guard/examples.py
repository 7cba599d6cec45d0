"""Texts with a secret of each kind, and texts of a similar form without one.

The secrets are invented when this is imported, so that no scan of the sources takes them for real ones.
"""

import hashlib
import random
import string
from typing import NamedTuple

_random = random.Random(7)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Example(NamedTuple):
    """The name of a pattern, a text that it masks, and a near miss that it leaves alone."""

    name: str
    text: str
    near_miss: str


def word(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """An invented value that begins with a letter and a digit where the alphabet has both."""
    first = "a1"[:length] if {"a", "1"} <= set(alphabet) else ""
    return first + "".join(_random.choice(alphabet) for _ in range(length - len(first)))


def hexadecimal(length: int) -> str:
    return word(length, "0123456789abcdef")


def upper(length: int) -> str:
    return word(length, string.ascii_uppercase)


def bitcoin_key(is_valid: bool) -> str:
    data = b"\x80" + bytes(range(1, 33))
    check = hashlib.sha256(hashlib.sha256(data).digest()).digest()[:4]
    number, text = int.from_bytes(data + check, "big"), ""
    while number:
        number, place = divmod(number, 58)
        text = _BASE58[place] + text
    return text if is_valid else text[:-1] + ("2" if text[-1] != "2" else "3")


PEM = "PRIVATE KEY-----"
CREDENTIALS = [
    Example(
        "private key",
        f"-----BEGIN RSA {PEM}\n{word(200)}\n-----END RSA {PEM}",
        "-----BEGIN CERTIFICATE-----\nMII\n",
    ),
    Example(
        "private key",
        f"it starts with -----BEGIN OPENSSH {PEM}\n{word(70)}\n{word(70)}",
        "-----BEGIN PUBLIC KEY-----",
    ),
    Example("age key", f"AGE-SECRET-KEY-1{upper(58)}", f"AGE-SECRET-KEY-1{upper(20)}"),
    Example("JSON web token", f"eyJ{word(30)}.eyJ{word(60)}.{word(43)}", f"eyJ{word(30)}.{word(60)}"),
    Example(
        "password in a URL",
        f"postgresql://app:{word(12)}@db.example.com/main",
        "postgresql://db.example.com:5432/main",
    ),
    Example(
        "bearer token", f"send Authorization: Bearer {word(32)}", "the bearer of extraordinarily bad news"
    ),
    Example("basic authorization", f"Authorization: Basic {word(24)}==", "basic authorization is enough"),
    Example("AWS access key", f"use AKIA{upper(16)} there", f"AKIA{upper(6)} is a branch"),
    Example("AWS secret key", f"aws_secret_access_key = {word(40)}", f"aws_secret_access_key = {word(12)}"),
    Example("Google API key", f"AIza{word(35)}", f"AIza{word(12)}"),
    Example("Google OAuth secret", f"GOCSPX-{word(28)}", f"GOCSPX-{word(5)}"),
    Example("Google OAuth token", f"ya29.{word(60)}", "ya29. was the section"),
    Example("Azure storage key", f"AccountName=a;AccountKey={word(86)}==", f"AccountKey={word(10)}"),
    Example("Azure client secret", f"abc8Q~{word(31)}", f"abc8Q~{word(8)}"),
    Example("DigitalOcean token", f"dop_v1_{hexadecimal(64)}", f"dop_v1_{hexadecimal(20)}"),
    Example("Heroku key", f"HRKU-{word(60)}", "HRKU-12"),
    Example("Cloudflare key", f"v1.0-{hexadecimal(24)}-{hexadecimal(146)}", "v1.0-rc1-2024"),
    Example("Supabase token", f"sbp_{hexadecimal(40)}", "sbp_project"),
    Example("PlanetScale credential", f"pscale_tkn_{word(43)}", "pscale_tkn_short"),
    Example("Databricks token", f"dapi{hexadecimal(32)}", "dapia dapib"),
    Example("Anthropic key", f"sk-ant-api03-{word(90)}", "sk-ant-farm"),
    Example("OpenAI key", f"sk-proj-{word(80)}", "sk-proj-one"),
    Example("OpenAI key", f"the key sk-{word(48)}", "sk-learn is installed"),
    Example("OpenRouter key", f"sk-or-v1-{hexadecimal(64)}", "sk-or-v1-x"),
    Example("Hugging Face token", f"hf_{word(34)}", "hf_transfer"),
    Example("Groq key", f"gsk_{word(52)}", "gsk_stock"),
    Example("xAI key", f"xai-{word(80)}", "xai-methods"),
    Example("Replicate token", f"r8_{word(37)}", "r8_spyder"),
    Example("Perplexity key", f"pplx-{word(48)}", "pplx-api"),
    Example("GitHub token", f"ghp_{word(36)}", f"ghp_{word(10)}"),
    Example("GitHub fine-grained token", f"github_pat_{word(60)}", "github_pat_setup"),
    Example("GitLab token", f"glpat-{word(20)}", "glpat-docs"),
    Example("Bitbucket password", f"ATBB{word(32)}", "ATBBQ"),
    Example("Atlassian token", f"ATATT3{word(180)}", "ATATT3 was the code"),
    Example("npm token", f"npm_{word(36)}", "npm_config_registry"),
    Example("Python package index token", f"pypi-AgE{word(120)}", "pypi-AgEnt"),
    Example("RubyGems key", f"rubygems_{hexadecimal(48)}", "rubygems_version"),
    Example("Docker token", f"dckr_pat_{word(27)}", "dckr_pat_x"),
    Example("Vault token", f"hvs.{word(90)}", "hvs.py"),
    Example("Terraform token", f"{word(14)}.atlasv1.{word(67)}", "x.atlasv1.y"),
    Example("Doppler token", f"dp.pt.{word(43)}", "dp.pt.md"),
    Example("Grafana token", f"glsa_{word(32)}_{hexadecimal(8)}", "glsa_x"),
    Example("New Relic key", f"NRAK-{upper(27)}", "NRAK-1"),
    Example("Sentry token", f"sntrys_{word(120)}", "sntrys_x"),
    Example("Postman key", f"PMAK-{hexadecimal(24)}-{hexadecimal(34)}", "PMAK-abc"),
    Example("Linear key", f"lin_api_{word(40)}", "lin_api_docs"),
    Example("Notion token", f"ntn_{word(46)}", "secret_santa"),
    Example("Airtable token", f"pat{word(14)}.{hexadecimal(64)}", "patience.abc"),
    Example("Figma token", f"figd_{word(40)}", "figd_x"),
    Example("Slack token", f"xoxb-{word(12, string.digits)}-{word(24)}", "xoxo"),
    Example(
        "Slack webhook",
        f"https://hooks.slack.com/services/T{upper(8)}/B{upper(8)}/{word(24)}",
        "hooks.slack.com/docs",
    ),
    Example("Discord token", f"M{word(23)}.{word(6)}.{word(38)}", "Meeting.notes.txt"),
    Example(
        "Discord webhook",
        f"https://discord.com/api/webhooks/{word(18, string.digits)}/{word(68)}",
        "/api/webhooks/12",
    ),
    Example("Telegram token", f"{word(10, string.digits[1:])}:AA{word(33)}", "12345678:AAbc"),
    Example("Twilio key", f"SK{hexadecimal(32)}", "SK2024 is a model"),
    Example("SendGrid key", f"SG.{word(22)}.{word(43)}", "SG.com"),
    Example("Mailgun key", f"key-{word(32, string.ascii_lowercase + string.digits)}", "key-value store"),
    Example("Mailchimp key", f"{hexadecimal(32)}-us12", "the us-us12 zone"),
    Example("Stripe key", f"sk_live_{word(24)}", "sk_test_mode"),
    Example("Stripe webhook secret", f"whsec_{word(32)}", "whsec_x"),
    Example("Square token", f"sq0atp-{word(22)}", "sq0atp-x"),
    Example(
        "Braintree token", f"access_token$production${word(16, 'a1b2c3')}${hexadecimal(32)}", "access_token$x"
    ),
    Example("Shopify token", f"shpat_{hexadecimal(32)}", "shpat_x"),
    Example("Bitcoin private key", bitcoin_key(True), bitcoin_key(False)),
]
STATEMENTS = [
    Example("password", "My password is hunter2.", "My password is too weak."),
    Example(
        "password",
        "The password for the wifi at home is Tr0ub4dor&3",
        "The password for the wifi at home is the same",
    ),
    Example("password", "I changed my password to Blue42Sky", "I changed my password to something better"),
    Example("password", "我的密码是abc12345", "我的密码是什么"),
    Example("password", "sign in with password qwerty123", "sign in with password protection"),
    Example("login", f"my login is ana / {word(10)}", "my login is broken / please help"),
    Example("API key", f"the API key is {word(24)}", "the API key is stored in the vault"),
    Example("API key", f"密钥是{word(20)}", "密钥是重要的"),
    Example("token", f"token: {word(30)}", "token: whatever comes next"),
    Example("assigned secret", f"DB_PASS={word(14)}", "DB_PASS=changeme"),
    Example("PIN", "my PIN is 4831", "the pin is on page 4831"),
    Example("PIN", "The PIN for my debit card is 9920.", "I pinned 2024 photos"),
    Example("one-time code", "The verification code is 482913", "The postal code is 48291"),
    Example("one-time code", "验证码是482913", "邮政编码是482913"),
    Example(
        "seed phrase",
        "my seed phrase is apple bread candle dance eagle fabric garden hammer island jungle kitchen lemon",
        "my seed phrase is safe in a drawer",
    ),
    Example("hexadecimal private key", f"private key: 0x{hexadecimal(64)}", f"commit {hexadecimal(40)}"),
    Example(
        "card number", "My Visa card ending in 4242 was charged twice.", "The card game ends in 2024 points"
    ),
    Example(
        "card number", "the last four digits of my card are 4242", "the last four digits of the year are 2024"
    ),
    Example("card number", "我的银行卡尾号是4242", "我住在4242号"),
    Example("card number", "尾号4242的信用卡", "我的房间是4242"),
    Example("card number", "**** **** **** 4242", "**** four stars 4242"),
    Example("card security code", "the CVV is 123", "CVs are due on 123 Main Street"),
    Example("bank account", "my account number is 12345678", "my account manager has 12345678 followers"),
    Example("routing number", "the routing number is 021000021", "routing takes 021 hops"),
    Example("routing number", "sort code 20-00-00", "sort code review comments"),
]
NUMBERS = [
    Example("card number", "pay with 4242 4242 4242 4242", "pay with 4242 4242 4242 4243"),
    Example("card number", "Amex 3782-822463-10005", "Amex 3782-822463-10006"),
    Example("IBAN", "DE89 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00"),
    Example("US social security number", "it is 123-45-6789", "it is 000-45-6789"),
    Example("US social security number", "SSN: 123 45 6789", "SSN: unknown"),
    Example("US taxpayer number", "912-70-1234", "912-40-1234"),
    Example("Chinese resident id", "我的身份证号是11010519491231002X", "我的订单号是110105194912310021"),
    Example("UK national insurance number", "QQ is none, AB 12 34 56 C is one", "BG 12 34 56 C"),
    Example("UK health service number", "NHS number 943 476 5919", "NHS number 943 476 5918"),
    Example("Canadian social insurance number", "SIN 046 454 286", "SIN 046 454 287"),
    Example("Spanish id", "DNI 12345678Z", "DNI 12345678A"),
    Example("French social security number", "1 84 12 76 451 089 46", "1 84 12 76 451 089 47"),
    Example("Italian fiscal code", "RSSMRA85T10A562S", "RSSMRA85T10A562T"),
    Example("German tax id", "Steuer-ID 86 095 742 719", "Steuer-ID 86 095 742 718"),
    Example("Indian Aadhaar number", "2341 2341 2346", "2341 2341 2347"),
    Example("Indian Aadhaar number", "Aadhaar: 234123412346", "Aadhaar card office 2"),
    Example("Indian tax number", "PAN: ABCPE1234F", "PAN: ABCDE12345"),
    Example("Brazilian tax number", "529.982.247-25", "529.982.247-26"),
    Example("Brazilian tax number", "CPF 52998224725", "CPF 52998224726"),
    Example("Dutch citizen number", "BSN 111222333", "BSN 111222334"),
    Example("Swedish personal number", "811218-9876", "811218-9877"),
    Example("Singaporean id", "S1234567D", "S1234567E"),
    Example("Korean resident number", "900101-1234568", "900101-1234567"),
    Example("Australian tax number", "TFN 123 456 782", "TFN 123 456 783"),
    Example("Japanese individual number", "マイナンバー 1234 5678 9018", "マイナンバー 1234 5678 9012"),
    Example("Polish id", "PESEL 44051401359", "PESEL 44051401358"),
    Example("passport number", "My passport number is X1234567", "My passport number is in the drawer"),
    Example(
        "driving licence number", "driving licence number: MORGA657054SM9", "driving licence number: lost"
    ),
]
ALL = [*CREDENTIALS, *STATEMENTS, *NUMBERS]
