"""What gives a Chinese sentence away, and how it is told in the third person."""

import re

from ..facts.chinese_clauses import SOMEBODY, lacks_subject
from .quotes import around_speech

INJECTION = re.compile(
    "(?:忽略|无视|忘记|忘掉|绕过|不要遵守).{0,20}(?:指令|规则|提示|设定|说明|要求|限制)|^\\W{0,3}(?:系统"
    "|助手|开发者)(?:提示|消息)?[:：]"
    "|(?:写入|存入|加入|添加到|保存到|记录到).{0,10}记忆|(?:记住|保存|记录|存储).{0,12}(?:管理员"
    "|最高权限|超级用户)"
    "|你现在是|从现在(?:起|开始)，?你|(?:扮演|假装)|新的?指令|开发者模式|越狱"
)
ORDER = re.compile("^(?:请)?(?:保存|存储|记录|添加|写入|授予|删除|设置)")
# What follows is a text to work on, and no statement of the user.
_WORK = "(?:翻译|润色|改写|校对|总结|概括|修改|缩写|扩写|重写|改错|纠正语法|检查语法|改得|改成)"
_ASKED = "(?:请|麻烦|帮我|帮忙|你|您|能|能否|能不能|可以|可不可以|给我)*(?:[把将].{1,20}?)?"
WORK = re.compile(f"^{_ASKED}{_WORK}(?:[：:]|成|为|一下|这|下面|以下)")
WORK_BELOW = re.compile(
    f"^{_ASKED}{_WORK}[^。！？?：:]{{0,20}}[：:]|^{_ASKED}(?<=[面下段句话文子]){_WORK}|^{_ASKED}{_WORK}(?:一下)?(?:这|下面|以下)"
)
WORK_ABOVE = re.compile(f"^{_ASKED}{_WORK}(?:一下)?(?:这|上面|以上)|^{_ASKED}(?<=[面上段句话文子]){_WORK}")
HYPOTHETICAL = re.compile("^(?:如果|假如|假设|假使|要是|倘若|若是|假定|万一)(?!.*就好了)|如果我")
FLEETING = re.compile(
    "^(?:我|现在)*(?:好|很|有点|有些|太|快)?(?:饿|渴|困|冷|热)(?:了|死了|坏了|啊|呀)*[。！!]*$"
)
PLAIN = re.compile(
    "^我(?:现在|目前|也|还|一直|平时|经常|从小|特别|非常|很|最|不|没|更)*(?:是|有|叫|姓|属|对.{1,12}过敏|喜欢|讨厌|爱|怕"
    "|住|养|吃|喝|会|想(?:学|去|要|买|当|成为)|在.{1,20}(?:当|做|工作|上班|上学|读)|不?过敏|希望|信)"
    f"|^{SOMEBODY}(?:也|都|现在|今年|今年已经|不)*(?:是|叫|在|住|有|喜欢|对)"
    "|^在.{1,20}(?:当|做|工作|上班|上学|读)"
)
LEFT = re.compile(
    "我(?:已经|刚刚?|最近|上周|上个月|去年|昨天)*"
    "(?:(?:从.{1,20})?(?:辞职|离职|退休|被裁|被解雇|辞掉)|离开了?.{1,20}公司)"
)
WISH = re.compile("我(?:们)?(?:很|真|特别|非常|一直|也|还|好)*(?:想(?!到|起)|希望|梦想|盼望|渴望)")
RECALLED = re.compile(
    "(?:如|像|正如|就像)?[你您](?:刚才|之前|刚刚)?(?:说的|提到的|说得对|记得|说对)|[你您]说得?没错"
)
JUNK = re.compile(
    "^(?:谢谢|多谢|感谢|不客气|没关系|再见|拜拜|晚安|早安|好的|好啊|太好了|太棒了|真棒|真好|真不错|不错"
    "|恭喜|加油|祝[你您]|希望[你您]|哈哈|原来如此"
    "|[你您]好|[你您]的?|请|帮我|给我|告诉|听起来|看起来|那真|那太|这真|这太|我(?:知道了|明白|同意|懂了"
    "|理解)|为[你您])"
)
QUESTION = re.compile(
    "[?？]\\W*$|(?:吗|呢|么)[。！.!]?$|^(?:什么|怎么|为什么|哪里|哪个|谁|请问|能不能|可不可以|是不是|有没有)"
)
MIND = re.compile(
    "喜欢|喜爱|热爱|讨厌|不爱|爱(?:吃|喝|看|听|玩)|想(?:要|去|学|当|买|做|成为|吃|家|[妈爸]|念)|就好了|希望|梦想|愿望|觉得"
    "|认为|感到|感觉|相信|开心|高兴|难过|伤心|生气|担心|害怕|焦虑"
    "|紧张|兴奋|期待|后悔|失望|孤独|压力|感激|骄傲|自豪|满意|无聊|烦|偏好|更喜欢|最爱|最喜欢|受不了"
    "|舍不得|怀念|想念|打算|计划"
)
DONE = re.compile("了(?!解)|(?<![超经])过(?![敏程去年节于分度来])|曾经?|刚(?:刚|才)?")
OVER = re.compile("不[^，。]{1,20}了|不再|再也不|(?:没|没有|未)[^，。]{0,8}过|戒了?[烟酒糖]")
_FIRST = re.compile("我|咱")
_SPEAKING_TO = re.compile("[你您]")
_WORDS = (
    (re.compile("我自己"), "用户自己"),
    (re.compile("我们的|咱们的|咱们|我们"), "用户等人"),
    (re.compile("我家"), "用户家"),
    (re.compile("我(?=[妈爸哥弟姐妹爷奶老妻丈女男儿])"), "用户的"),
    (re.compile("[我咱]"), "用户"),
)
_AND_OTHERS = "用户等人"


def is_first_person(sentence: str) -> bool:
    """Whether somebody speaks of themselves."""
    return bool(_FIRST.search(sentence))


def speaks_to_somebody(sentence: str) -> bool:
    """Whether the other is spoken to."""
    return bool(_SPEAKING_TO.search(sentence))


def third_person_of(sentence: str) -> str | None:
    """The sentence in the third person; `None` where that cannot be done cleanly."""
    return around_speech(sentence, _told)


def _told(sentence: str) -> str | None:
    if speaks_to_somebody(sentence):
        return None
    if not is_first_person(sentence):
        return f"用户{sentence}" if lacks_subject(sentence) else None
    for pattern, told in _WORDS:
        sentence = pattern.sub(told, sentence)
    return sentence.replace(f"{_AND_OTHERS}的", "他们的")


def quoted(sentence: str) -> str:
    """The sentence word for word."""
    inner = sentence.replace("“", "‘").replace("”", "’")
    return f"用户说：“{inner}”"
