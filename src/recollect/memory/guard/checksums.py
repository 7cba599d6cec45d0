"""Checksums of card numbers, bank accounts and national ids. They tell real ones from other digits."""

import hashlib
from collections.abc import Sequence

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_NRIC_LETTERS = {"S": "JZIHGFEDCBA", "T": "GFEDCBAJZIH", "F": "XWUTRQPNMLK", "G": "RQPNMLKXWUT"}
_RESIDENT_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
# The odd positions of an Italian fiscal code, for the characters 0 to 9 and A to Z.
_FISCAL_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def digits_of(text: str) -> list[int]:
    """The ASCII digits of a text."""
    return [int(each) for each in text if "0" <= each <= "9"]


def luhn(text: str) -> bool:
    """Whether the digits have a valid Luhn checksum, and are not all the same."""
    digits = digits_of(text)
    doubled = [
        digit if place % 2 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(digits[-2::-1])
    ]
    return len(set(digits)) > 1 and (sum(doubled) + digits[-1]) % 10 == 0


def iban(text: str) -> bool:
    """Whether an IBAN has a valid checksum."""
    plain = "".join(text.split()).upper()
    return 15 <= len(plain) <= 34 and int(_letters_as_numbers(plain[4:] + plain[:4])) % 97 == 1


def _letters_as_numbers(text: str) -> str:
    return "".join(str(int(each, 36)) for each in text)


def social_security(text: str) -> bool:
    """Whether a US social security number can have been issued."""
    area, group, serial = text[:3], text[4:6], text[7:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def chinese_resident(text: str) -> bool:
    """Whether a Chinese resident id has a valid check character."""
    total = _weigh(digits_of(text[:17]), _RESIDENT_WEIGHTS)
    return "10X98765432"[total % 11] == text[17].upper()


def uk_health_service(text: str) -> bool:
    """Whether a number of the British health service has a valid check digit."""
    digits = digits_of(text)
    return (11 - _weigh(digits[:9], range(10, 1, -1)) % 11) % 11 == digits[9]


def spanish_id(text: str) -> bool:
    """Whether a Spanish DNI or NIE has a valid letter."""
    plain = text.upper().replace("-", "")
    number = int(plain[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2"))
    return _DNI_LETTERS[number % 23] == plain[-1]


def french_id(text: str) -> bool:
    """Whether a French social security number has a valid key."""
    plain = "".join(text.split()).upper().replace("2A", "19").replace("2B", "18")
    return 97 - int(plain[:13]) % 97 == int(plain[13:])


def italian_id(text: str) -> bool:
    """Whether an Italian fiscal code has a valid check letter."""
    plain = text.upper()
    odd = sum(_FISCAL_ODD[_fiscal_place(each)] for each in plain[:15:2])
    return chr(65 + (odd + sum(map(_fiscal_place, plain[1:15:2]))) % 26) == plain[15]


def _fiscal_place(character: str) -> int:
    return int(character) if character.isdigit() else ord(character) - 65


def german_tax_id(text: str) -> bool:
    """Whether a German tax id has a valid check digit."""
    digits, product = digits_of(text), 10
    for digit in digits[:10]:
        product = 2 * ((digit + product) % 10 or 10) % 11
    return (11 - product) % 10 == digits[10]


def verhoeff(text: str) -> bool:
    """Whether the digits have a valid Verhoeff checksum, as an Indian Aadhaar number has."""
    check = 0
    for place, digit in enumerate(reversed(digits_of(text))):
        check = _multiply(check, _permute(place, digit))
    return check == 0


def _multiply(one: int, other: int) -> int:
    """The product in the dihedral group of ten elements."""
    if one < 5:
        return (one + other) % 5 if other < 5 else 5 + (one + other) % 5
    return 5 + (one - other) % 5 if other < 5 else (one - other) % 5


def _permute(place: int, digit: int) -> int:
    for _ in range(place % 8):
        digit = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)[digit]
    return digit


def brazilian_id(text: str) -> bool:
    """Whether a Brazilian CPF has valid check digits, and not all digits are the same."""
    digits = digits_of(text)
    first = _weigh(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = _weigh(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return len(set(digits)) > 1 and digits[9:] == [first, second]


def dutch_id(text: str) -> bool:
    """Whether a Dutch citizen service number passes the eleven test."""
    return _weigh(digits_of(text), (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def singaporean_id(text: str) -> bool:
    """Whether a Singaporean NRIC or FIN has a valid letter."""
    plain = text.upper()
    return _NRIC_LETTERS[plain[0]][_weigh(digits_of(plain), (2, 7, 6, 5, 4, 3, 2)) % 11] == plain[-1]


def korean_id(text: str) -> bool:
    """Whether a Korean resident registration number has a valid check digit."""
    digits = digits_of(text)
    return (11 - _weigh(digits[:12], (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10 == digits[12]


def australian_tax_number(text: str) -> bool:
    """Whether an Australian tax file number has a valid checksum."""
    return _weigh(digits_of(text), (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def japanese_id(text: str) -> bool:
    """Whether a Japanese individual number has a valid check digit."""
    digits = digits_of(text)
    rest = _weigh(digits[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if rest <= 1 else 11 - rest) == digits[11]


def polish_id(text: str) -> bool:
    """Whether a Polish PESEL has a valid check digit."""
    digits = digits_of(text)
    return (10 - _weigh(digits[:10], (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10 == digits[10]


def base58_check(text: str) -> bool:
    """Whether a text in Base58 ends with the checksum of its bytes, as a Bitcoin private key does."""
    number = 0
    for character in text:
        number = number * 58 + _BASE58.index(character)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return hashlib.sha256(hashlib.sha256(data[:-4]).digest()).digest()[:4] == data[-4:]


def _weigh(digits: Sequence[int], weights: Sequence[int]) -> int:
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))
