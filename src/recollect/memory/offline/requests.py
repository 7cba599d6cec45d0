"""Recognizes requests, exercises and other sentences that ask for work, and chats that hardly have any."""

import re
from collections.abc import Sequence

from ..texts.any_case import AnyCase

_TASK_VERBS = (
    "write make create give show tell explain list find "
    "fix help build generate translate summari[sz]e solve calculate"
    " compute convert compare describe draw design draft "
    "edit rename refactor review check add remove delete change"
    " replace put set send book order buy remind plan suggest "
    "recommend quiz test run print return sort implement"
    " continue rewrite rephrase proofread correct act pretend "
    "answer reply respond analy[sz]e identify classify extract"
    " provide define prove complete fill look see read "
    "think consider search open close update install note say do"
    " schedule cancel pick choose name outline prepare "
    "simplify shorten expand improve optimi[sz]e debug format clean"
    " use switch keep reset resend refund block unblock "
    "evaluate discuss elaborate assume suppose imagine determine"
    " highlight paraphrase convert merge split count cook "
    "grant store save record insert mark treat erase let stop"
    " compose propose rank rate specify state take turn "
    "try type upload visit wait watch freeze pause transfer tag"
)
_TASK = "|".join(_TASK_VERBS.split())
_POLITE = (
    r"(?:please |pls |plz |kindly |now |then |ok |okay |and |so |next,? |also |just |bot,? |hey,? |hi,? "
    r"|first,? )*"
)
_HEDGES = (
    r"(?:kinda |sorta |kind of |sort of |a bit |a little |pretty |quite |really |very |so |just |still "
    r"|also |now |currently |feeling |a little bit |super |totally )*"
)
ASKING = re.compile(
    rf"^(?:i['’]?m|i am|i feel|i['’]ve been|i have been|i was) {_HEDGES}(?:wondering|curious|confused|stuck"
    rf"|lost|asking|not sure|unsure|torn|conflicted|eager|ready to|having (?:trouble|issues?|problems?"
    rf"|a hard time|difficult\w+)"
    r"|struggling (?:to|with)|trying (?:to|out)|looking (?:for (?:advice|help|tips|ways|a way|some"
    r"|something|suggestions|ideas|recommendations)|to|at|into)|thinking (?:about (?:how|what|whether|if)"
    r"|if|whether|of (?:using|adding|trying))"
    r"|interested in (?:learning|knowing|how|understanding)|getting (?:an?|the|this) (?:error|warning"
    r"|message|exception)|getting (?:confused|stuck)|seeing (?:an?|the|this) (?:error|warning)"
    r"|working (?:on (?:this|it|the|a|my)|through|with)"
    r"|talking about|referring|asking|following|reviewing|considering (?:using|adding)|building (?:a|an"
    r"|the|this)|using (?:it|this|that|the|an?)|supposed to|about to|aiming (?:to|for)|focusing on"
    r"|preparing (?:my|the|a))\b"
    r"|^i (?:want|need|would like|['’]d like|wanna|have|hope|got) to (?:know|make sure|understand|see"
    r"|solve|check|ensure|confirm|ask|find|implement|add|create|build|write|fix|figure|use|try|get (?:this"
    r"|it|the|some|that)|do|plot|test|display|show|handle"
    r"|change|verify|print|log|store|calculate|compare|explore|focus|discuss|talk|learn (?:how|more|about)"
    r"|be (?:able|sure)|have (?:a|an|the|some)|keep|improve (?:this|my (?:code|function|query))|further"
    r"|share|schedule|book|cancel|order|return|freeze|prepare|incorporate)\b"
    r"|^i(?:['’]d| would) (?:like|love|appreciate|prefer) (?:to (?:use|know|see|further|understand|explore"
    r"|have|get|add|try|discuss|learn how|dive)|some|any|an?|if|it if|help)\b"
    r"|^i need (?!to (?:avoid|take|eat|wear|use an?|watch)\b|an? (?:wheelchair|inhaler|epi|interpreter))"
    r"|^i (?:think|feel|guess|believe|hope) (?:diving|that|this|it|we|the|i|so|good|like (?:it|that|this"
    r"|i))\b"
    r"|^i (?:get|got|see|keep getting|receive|am getting) (?:this|that|these|an? (?:error|warning|message"
    r"|exception|popup|blank)|the (?:error|warning|message|same)|no (?:error|output|response)|[\"'`])"
    r"|^i (?:tried|ran|changed|added|updated|installed|restarted|checked|clicked|followed|lowered"
    r"|implemented|fixed|renamed|removed) (?:the|this|that|an?|it|these|your|some|to|my code)\b",
    re.IGNORECASE,
)
"""What the user is at now, which is over when the conversation is."""
REQUEST = re.compile(
    rf"^{_POLITE}(?:(?:can|could|would|will) (?:you|u|we|i (?:get|have|see|ask|book))\b|(?:{_TASK}|don['’]t"
    rf"|do not)\b(?!['’])"
    r"|help\b|i (?:need|want|would like|['’]d like) (?:you to|your|help|some help|a quick)\b"
    r"|(?:i['’]d|i would) (?:like|love|appreciate) (?:you|it if|to (?:know|ask|understand|see|book|change"
    r"|cancel|order|return|insure))\b"
    r"|i (?:was wondering|wonder|am wondering)\b|(?:what|how) about\b|let['’]?s\b|lets\b|any (?:ideas?"
    r"|tips?|suggestions?|advice))",
    re.IGNORECASE,
)
"""A sentence that asks for something to be done now."""
QUESTION = re.compile(
    r"[?？]\W*$|^(?:and |so |but |ok |okay |btw |hm+ )*(?:what|how|why|where|when|who|whose|which|is|are|am"
    r"|do|does|did|can|could|would|will"
    r"|should|shall|may|have|has)(?:['’]s|['’]re|n['’]t)? (?:i|you|we|it|this|that|these|those|they|there"
    r"|he|she|the|a|an|my|your|our|to"
    r"|is|are|was|do|does|did|can|should|would|many|much|long|old|often|far|come|about|if|could|will|kind"
    r"|sort|type)\b",
    re.IGNORECASE,
)
_COLON = re.compile(
    rf"^{_POLITE}(?:(?:can|could|would|will) you (?:please )?)?(?:{_TASK}|next|exercise|task|question"
    rf"|problem|example|given|story|prompt"
    r"|quote|text|title|abstract|input|output|context|lyrics|poem)\b[^.!?\n]{0,120}?[:：](?!\d)",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:wrote|writes?|written|says?|said|replied|answered|texted|emailed|posted|sent (?:me|us) (?:this"
    r"|the following)|this is what"
    r"|here(?:['’]s| is)|as follows|the following|below)\b[^.!?\n]{0,60}[:：]\s*(?:$|[\"“'‘])",
    re.IGNORECASE,
)
SUPPOSED = re.compile(
    r"^(?:ok(?:ay)?,? |so,? |now,? )*(?:suppose|supposing|assum(?:e|ing)|imagine|hypothetically|what if"
    r"|let['’]?s (?:say|assume|pretend|imagine)"
    r"|pretend|say (?:i|we)\b|for example,? (?:i|if)|in this (?:story|game|scenario|exercise))\b"
    r"|^(?:假设|假如|假定|比如说?我|想象)",
    re.IGNORECASE,
)
"""What follows is made up, to the end of the message."""
_EXERCISE = re.compile(
    r"\bhow (?:many|much|old|long|far)\b[^.!?]{0,80}\b(?:i|we|he|she|they|left|there|is|are|have|has"
    r"|remain\w*|total)\b[^.!?]{0,40}\?"
    r"|_{3,}|还?剩(?:下)?(?:几|多少)|一共(?:有)?(?:几|多少)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twice|half)\b|[一二两三四五六七八九十]"
)
_FRIENDLY = (
    r"(?:take care|keep (?:it|up|on|going|pushing|me|your|working|in touch)|see (?:you|ya)|look(?:s"
    r"|ing)? (?:at|like|forward)|check (?:this|it|out|them|my)|make sure"
    r"|do (?:they|you|your)|(?:can|could|will|would) you (?:tell|show|give)|give (?:it|them|him|her)"
    r"|count me|let me know|tell (?:me|them|him|her)|stay|watch out|set (?:up|out))\b"
)
_TASKS = AnyCase(
    rf"```|^{_POLITE}(?!{_FRIENDLY})(?:(?:can|could|would) you (?:please )?(?:{_TASK})|(?:{_TASK}) "
    rf"|how (?:do|can|should|would) (?:i|we|one)\b"
    r"|(?:what|who|why|where|which)(?:['’]s| is| are| does| do| did)? (?:the|a|an|is|are|this|my|it|i|we"
    r"|good|happened|causes?|does|wrote|can|should)\b"
    r"|is (?:it|there|this)\b|are there\b|should (?:i|we)\b|can i\b|do (?:i|we)\b|does\b|i (?:need|want"
    r"|['’]d like|would like) (?:a|an|to|some|you)\b"
    r"|solve\b|any (?:tips|ideas|recipe)|quiz)"
    r"|\bwhy\?"
    rf"|\b(?:can|could|would|will) you (?:please |also |maybe |just |kindly )?(?:{_TASK})\b(?! (?:in|up"
    rf"|a (?:good|great)|care|me (?:more|about|a bit|what)))|\bhow (?:do|can|should|would|could) (?:i|we)\b"
    r"|\b(?:what|which|where|when) (?:should|can|do|would) (?:i|we)\b|\b(?:should|could|can) i\b"
    r"|\bhelp me (?:with|to|understand|find|write|figure|decide|plan|create|choose|set|debug|fix)\b"
    r"|\btrying to (?:understand|figure|solve|implement|fix|verify|calculate|debug|apply|master|write"
    r"|build|set up|connect|install|find out|decide)\b"
    r"|\b(?:error|traceback|refund|order number|function|code|bug|install|export|router|subscription"
    r"|account|password|invoice|warranty)\b",
    r"^(?:帮我?|请(?!问你)|怎么|如何|写|给我|推荐|翻译|有什么|什么是|为什么|能不能|可以帮)|怎么(?:做|办|写|用)|多久|到哪",
    re.MULTILINE,
)
_ASSISTS = re.compile(
    r"\b(?:how (?:can|may) i help|what can i (?:do|help)|here to help|happy to assist)|有什么可以帮",
    re.IGNORECASE,
)
_MOST_TASKS = 0.15  # share of the user's messages in a personal chat that ask for work
_LOOKED_AT = 600


def asks_for_work(text: str) -> bool:
    """Whether a message asks for information or work, as people ask an assistant."""
    return _TASKS.search(text[:_LOOKED_AT])


def is_personal(said: Sequence[str], heard: Sequence[str] = ()) -> bool:
    """Whether the user chats about their life: hardly any of the messages asks for work.

    `heard` has the messages of the assistant: one that offers its help waits for work.
    """
    if any(_ASSISTS.search(text[:_LOOKED_AT]) for text in heard):
        return False
    return sum(map(asks_for_work, said)) <= _MOST_TASKS * len(said)


def introduces_text(sentence: str) -> bool:
    """Whether a text to work on, or somebody else's words, follows the sentence."""
    return bool(_COLON.search(sentence) or _TOLD.search(sentence))


def is_exercise(text: str) -> bool:
    """Whether a message is an exercise, as in "I have 5 apples and eat 2. How many do I have left?"."""
    match = _EXERCISE.search(text[:_LOOKED_AT])
    return match is not None and bool(_NUMBER.search(text[: match.start() + 1]) or "___" in match.group())
