"""Words that are about the same thing, for questions that use other words than the answer.

"Where does she live?" is answered by "moved to Lisbon". A group is a topic that people ask about. Its words
are no synonyms, so a related word counts less than the word itself.
"""

from .terms import stem, terms

_GROUPS = (
    "live reside home move relocate city town country address flat house neighbourhood",
    "job work profession occupation career employ employer company office",
    "eat food diet meal dinner lunch breakfast restaurant cook dish recipe pizza"
    " allergy allergic vegetarian vegan gluten",
    "drink tea coffee wine beer alcohol",
    "child children kid kids son daughter twins baby grandson granddaughter",
    "pet cat dog kitten puppy",
    "wife husband partner spouse married relationship girlfriend boyfriend divorced separated engaged",
    "medicine medication tablet pill drug illness disease condition doctor health",
    "car drive vehicle",
    "bike bicycle cycling",
    "travel trip journey fly flight plane train vacation holiday visit",
    "study subject university college school degree major",
    "language speak learn",
    "exam test",
    "music song playlist instrument band concert",
    "sport run race marathon football team club coach training",
    "movie film show series",
    "book novel read author",
    "paint picture painting art",
    "money cost price budget raise fund",
    "contact reach email phone call",
    "birthday born age old",
    "hobby hobbies weekend enjoy",
    "database postgres postgresql mysql sqlite",
    "deploy release ship",
    "住 住在 搬到 搬家 城市 家",
    "工作 职业 老师 上班 公司",
    "吃 不吃 过敏 饮食 食物",
    "喜欢 爱好 周末",
)


def _related() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _GROUPS:
        its = [term for word in group.split() for term in (terms(word) if len(terms(word)) == 1 else [word])]
        for term in its:
            found.setdefault(term, {}).update(dict.fromkeys(its))
    return {term: tuple(other for other in others if other != term) for term, others in found.items()}


_RELATED = _related()


def related_terms(term: str) -> tuple[str, ...]:
    """The terms about the same thing as a term; none for most terms."""
    return _RELATED.get(stem(term) if term.isascii() else term, ())
