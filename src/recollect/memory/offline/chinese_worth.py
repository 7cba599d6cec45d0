"""Decides whether a Chinese statement is worth an entry in any conversation, as `worth` does for English."""

import re

from ..facts.chinese_clauses import SOMEBODY
from ..facts.health import concerns_health

_ABOUT_USER = re.compile(f"[我咱]|^{SOMEBODY}")
_PASSING = re.compile(
    "^(?:我|我们)?(?:知道|明白|懂|同意|觉得(?:这|那|可以|还|不错)|想(?:问|知道|看看|了解|请)|需要(?:一|你|帮)|要(?:一|这)|试|看(?:看|一下)|先|再"
    "|去(?:看看|试)|来|在(?:想|看|等)"
    "|很急|没事|没办法|好了|可以|就是|也是|还行|有(?:一)?个?(?:问题|疑问|事|想法|地方))|[这那](?:段|个)?(?:代码|函数|句话|题|道题|文章)|报错|怎么|什么(?!都)"
    "|吗|呢$|哈哈"
)
_FLEETING = re.compile("今天|今晚|今早|刚才|这会儿|有点(?:累|饿|困|烦)|好(?:累|饿|困|烦|热|冷)|急")
_LASTS = re.compile(
    "[我咱](?:们)?(?:公司|团队|家|学校|班|的|自己)?.{0,8}(?:是|叫|姓|属|有|养|住|在.{1,20}(?:当|做|工作|上班|上学|读|开)|做.{0,6}的|学的?是"
    "|读(?:博|研|大学|高中|初中)|专业|会(?:说|弹|开|做)|懂|用的?是?|喜欢|讨厌|爱|怕|信|习惯|偏好"
    "|没.{0,4}过|不(?:吃|喝|喜欢|爱|能|会|抽|太喜欢|太能)|吃素|过敏|每(?:天|周|个?月|年|晚|早)|经常|平时|总是|从不|从来|一直|一般|只(?:能|用|吃|喝)|必须"
    "|打算|计划|准备|希望|想(?:学|去|要|买|当|考|成为|换)|目标|梦想|预算"
    "|搬|换了|结婚|离婚|订婚|分手|辞职|离职|退休|毕业|考上|怀孕|生了|出生|开了|创业|买了|卖了|加入|开始|放弃|戒|拿到|去世|决定|升级|改用)"
)
_OF_SOMEBODY = re.compile(
    f"^{SOMEBODY}(?:.{{0,8}})(?:是|叫|在|住|有|喜欢|对|也|都|今年|[0-9一二三四五六七八九十]|不|经常|每|要|会|下|上|走|膝|身|去世|过来|来)"
)
_IS_MINE = re.compile("是(?:我|用户)(?:的)?(?:最|一|朋友|同学|老)")


def is_worth_keeping_in_chinese(sentence: str, is_dated: bool) -> bool:
    """Whether a sentence about the user, or about somebody close to them, is worth an entry."""
    lacks_user = not _ABOUT_USER.search(sentence)
    if _PASSING.search(sentence):
        return False
    if concerns_health(sentence):
        return True
    if _FLEETING.search(sentence) and not is_dated:
        return False
    if lacks_user:
        return is_dated or bool(_LASTS.search("我" + sentence))
    return is_dated or any(kind.search(sentence) for kind in (_LASTS, _OF_SOMEBODY, _IS_MINE))
