"""Chinese clauses and their subjects."""

import pytest

from .kit import texts

CLAUSES = {
    "我妈妈是护士，住在成都。": ["用户的妈妈是护士。", "用户的妈妈住在成都。"],
    "我妈妈是护士。住在成都。": ["用户的妈妈是护士。", "用户的妈妈住在成都。"],
    "我最好的朋友叫小林，在利马工作。": ["用户最好的朋友叫小林。", "用户最好的朋友在利马工作。"],
    "我叫小林，我弟弟叫小江，在成都上班。": ["用户叫小林。", "用户的弟弟叫小江。", "用户的弟弟在成都上班。"],
    "小江是我同学，住在成都。": ["小江是用户同学，住在成都。"],
    "我叫小林，住在成都，在利马大学工作。": ["用户叫小林。", "用户住在成都。", "用户在利马大学工作。"],
    "住在成都，属龙。": ["用户住在成都。", "用户属龙。"],
    "我住在成都，但是下个月搬到利马。": [
        "用户住在成都。",
        "用户2023年6月搬到利马。",
    ],
}


@pytest.mark.parametrize(("said", "told"), CLAUSES.items())
def test_a_clause_without_a_subject_is_about_the_one_before(said: str, told: list[str]) -> None:
    assert texts(said) == told


def test_a_liking_for_cats_does_not_make_the_cats_live_there() -> None:
    assert "用户住在成都。" in texts("我很喜欢猫，住在成都。")
