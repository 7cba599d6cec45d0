"""Card numbers, bank accounts and national ids, told from other numbers by their checksums."""

from . import checksums
from .patterns import SecretPattern, secret

_DIGIT = " ".join("0123456789")
_APART = r"(?<![\w.-])"
_END = r"(?![\w-]|\.\d)"


def _named(words: str, number: str) -> str:
    """A number after its name: without a name, too many other numbers have its form."""
    return rf"(?i:\b(?:{words}))[^\d\n]{{0,25}}?(?P<secret>(?<![\w.]){number}){_END}"


NUMBERS: tuple[SecretPattern, ...] = (
    secret(
        "card number",
        _DIGIT,
        rf"{_APART}(?:[2-6]\d{{3}}(?:[ -]?\d{{4}}){{3}}|3[47]\d\d[ -]?\d{{6}}[ -]?\d{{5}}"
        rf"|6\d{{3}}(?:[ -]?\d{{4}}){{3}}[ -]?\d{{3}}){_END}",
        checksums.luhn,
    ),
    secret(
        "IBAN",
        _DIGIT,
        rf"\b[A-Z]{{2}}\d{{2}}(?:[ ]?[A-Z0-9]{{4}}){{2,7}}(?:[ ]?[A-Z0-9]{{1,3}})?{_END}",
        checksums.iban,
    ),
    secret(
        "US social security number", "-", rf"{_APART}\d{{3}}-\d{{2}}-\d{{4}}{_END}", checksums.social_security
    ),
    secret(
        "US social security number",
        "social ssn",
        _named(r"ssn|social security (?:number|no\.?)", r"\d{3}[ -]?\d{2}[ -]?\d{4}"),
    ),
    secret("US taxpayer number", "-", rf"{_APART}9\d\d-(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])-\d{{4}}{_END}"),
    secret(
        "Chinese resident id",
        _DIGIT,
        r"(?<![0-9A-Za-z])[1-9]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d"
        r"|3[01])\d{3}[0-9Xx](?![0-9A-Za-z])",
        checksums.chinese_resident,
    ),
    secret(
        "UK national insurance number",
        _DIGIT,
        rf"\b(?!BG|GB|NK|KN|TN|NT"
        rf"|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{{2}} ?\d{{2}} ?\d{{2}} ?[A-D]{_END}",
    ),
    secret(
        "UK health service number",
        "nhs",
        _named("nhs", r"\d{3}[ -]?\d{3}[ -]?\d{4}"),
        checksums.uk_health_service,
    ),
    secret(
        "Canadian social insurance number",
        "sin social",
        _named(r"sin|social insurance (?:number|no\.?)", r"\d{3}[ -]?\d{3}[ -]?\d{3}"),
        checksums.luhn,
    ),
    secret(
        "Spanish id", _DIGIT, rf"{_APART}(?:\d{{8}}|[XYZ]\d{{7}})-?[A-HJ-NP-TV-Z]{_END}", checksums.spanish_id
    ),
    secret(
        "French social security number",
        _DIGIT,
        rf"{_APART}[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{{3}} ?\d{{3}} ?\d\d{_END}",
        checksums.french_id,
    ),
    secret(
        "Italian fiscal code",
        _DIGIT,
        rf"{_APART}[A-Z]{{6}}\d\d[A-EHLMPRST]\d\d[A-Z]\d{{3}}[A-Z]{_END}",
        checksums.italian_id,
    ),
    secret(
        "German tax id",
        "steuer tax",
        _named(r"steuer-?id\w*|steueridentifikationsnummer|german tax id", r"[1-9]\d ?\d{3} ?\d{3} ?\d{3}"),
        checksums.german_tax_id,
    ),
    secret(
        "Indian Aadhaar number",
        _DIGIT,
        rf"{_APART}[2-9]\d{{3}} \d{{4}} \d{{4}}(?! ?\d){_END}",
        checksums.verhoeff,
    ),
    secret(
        "Indian Aadhaar number", "aadhaar aadhar", _named("aadhaar|aadhar", r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}")
    ),
    secret(
        "Indian tax number",
        "pan",
        _named(r"pan(?: card| number| no\.?)?", r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]"),
    ),
    secret(
        "Brazilian tax number", "-", rf"{_APART}\d{{3}}\.\d{{3}}\.\d{{3}}-\d\d{_END}", checksums.brazilian_id
    ),
    secret("Brazilian tax number", "cpf", _named("cpf", r"\d{11}"), checksums.brazilian_id),
    secret(
        "Dutch citizen number",
        "bsn burgerservicenummer",
        _named("bsn|burgerservicenummer", r"\d{9}"),
        checksums.dutch_id,
    ),
    secret(
        "Swedish personal number",
        "-",
        rf"{_APART}(?:19|20)?(?P<secret>\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])-\d{{4}}){_END}",
        checksums.luhn,
    ),
    secret("Singaporean id", "s t f g", rf"{_APART}[STFG]\d{{7}}[A-Z]{_END}", checksums.singaporean_id),
    secret(
        "Korean resident number",
        "-",
        rf"{_APART}\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])-[1-4]\d{{6}}{_END}",
        checksums.korean_id,
    ),
    secret(
        "Australian tax number",
        "tfn tax",
        _named(r"tfn|tax file (?:number|no\.?)", r"\d{3} ?\d{3} ?\d{3}"),
        checksums.australian_tax_number,
    ),
    secret(
        "Japanese individual number",
        "number マイナンバー 個人番号",
        _named("my number|individual number|マイナンバー|個人番号", r"\d{4}[ -]?\d{4}[ -]?\d{4}"),
        checksums.japanese_id,
    ),
    secret("Polish id", "pesel", _named("pesel", r"\d{11}"), checksums.polish_id),
    secret(
        "passport number",
        "passport 护照",
        _named(r"passport (?:number|no\.?|#)|护照号码?", r"[A-Z]{0,2}\d{6,9}[A-Z]?"),
    ),
    secret(
        "driving licence number",
        "licen",
        _named(
            r"(?:driver'?s?|driving)[ -]licen[cs]e (?:number|no\.?|#)",
            r"[A-Z0-9][A-Z0-9-]{4,19}\d[A-Z0-9-]{0,4}",
        ),
    ),
)
