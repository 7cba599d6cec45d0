"""Word lists for the comparison of texts: words that do not matter, words that do, and synonyms.

The lists hold words as people write them. Stems are compared.
"""

from .terms import stem


def _stems(words: str) -> frozenset[str]:
    return frozenset(word if "一" <= word[0] <= "鿿" else stem(word) for word in words.split())


MONTH_NAMES = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, 1)} | {
    name[:3]: number for number, name in enumerate(MONTH_NAMES, 1)
}

LIGHT = _stems(
    "a an the this that these those it its is are was were be been being am do does did have has had having"
    " of in on at to for with by from as and or so too also just really very quite pretty totally absolutely"
    " definitely actually currently now right always well much lot lots bit some any such one ones i me my we"
    " our us you your he him his she her they them their user user's users said says say there here then"
    " which who whom when where what how got get gets getting about into out up still yet even already own"
    " recently super truly basically literally kind sort thing things stuff there's"
    " it's that's he's she's s 用户"
)
"""Words that may differ between texts that state the same."""

MATTERS = _stems(
    "mother mom mum father dad parent sister brother son daughter child kid wife husband partner girlfriend"
    " boyfriend friend aunt uncle cousin niece nephew grandmother grandma grandfather grandpa colleague boss"
    " neighbor neighbour want wish hope plan might could would should may if used stop stopped quit start"
    " started begin finish almost nearly before after former ex first second third new old left right morning"
    " evening afternoon night hate dislike without only"
)
"""Words that never differ between texts that state the same: persons, order, wishes."""

NEGATIONS = ("not", "never", "no longer", "no", "none", "nothing", "nobody", "neither", "without", "cannot")

ORDERED = _stems("prefer than rather instead before after from over")
"""Words that make the order of the other words matter."""

PAST_STATES = frozenset({"was", "were", "lived", "worked", "had", "owned", "used", "loved", "liked"})
PRESENT_STATES = frozenset({"is", "are", "lives", "works", "has", "owns", "loves", "likes"})

_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty"
)
NUMBERS = {
    stem(word): str(number)
    for number, word in enumerate(_NUMBER_WORDS.split())
    if number != 1  # "one" is mostly no number
} | {"dozen": "12", "coupl": "2", "twice": "2", "both": "2"}

_GROUPS = (
    "live reside dwell",
    "like love enjoy adore",
    "movie film",
    "job work employ profession occupation",
    "big large huge",
    "begin start",
    "buy purchase bought",
    "child kid children",
    "mother mom mum mama",
    "father dad papa",
    "grandmother grandma granny",
    "grandfather grandpa",
    "bike bicycle",
    "car automobile",
    "phone telephone mobile",
    "photo picture",
    "happy glad",
    "upset sad",
    "hate detest",
    "stop quit",
    "city town",
    "house home",
    "go went gone",
    "eat ate eaten",
    "take took taken",
    "see saw seen",
    "make made",
    "run ran",
    "give gave given",
    "teach taught",
    "find found",
    "win won",
    "write wrote written",
    "meet met",
    "feel felt",
    "think thought",
    "lose lost",
    "visit visiting",
    "favorite favourite",
    "allergy allergic",
)
SAME = {stem(word): stem(group.split()[0]) for group in _GROUPS for word in group.split()}
"""The stem that represents each of several synonyms."""

CJK_LIGHT = frozenset("了的很也都就在吧啊呢呀哦嘛地得着过是有真太挺蛮说我们他她它个这那些正儿")
"""Characters that may differ between texts that state the same."""

CJK_SAME = (
    ("用户", ""),
    ("居住", "住"),
    ("喜爱", "喜欢"),
    ("热爱", "喜欢"),
    ("酷爱", "喜欢"),
    ("爱喝", "喜欢喝"),
    ("爱吃", "喜欢吃"),
    ("非常", ""),
    ("特别", ""),
    ("十分", ""),
    ("目前", ""),
    ("现在", ""),
    ("妈妈", "母亲"),
    ("爸爸", "父亲"),
    ("电影片", "电影"),
    ("工作于", "工作"),
    ("任职于", "工作"),
    ("上班", "工作"),
)
"""Words and their replacements, in the order of replacement."""
