"""Decides whether an English statement is worth an entry in any conversation, also between requests for work.

It is if it says who the user is, what they have, do, like, avoid, must or must not do, what they plan, and
what has changed in their life. What is only about the task at hand is not.
"""

import re

from ..facts.health import concerns_health
from ..texts.any_case import AnyCase
from .requests import ASKING

_ANY_CASE = re.IGNORECASE
_KIN = (
    r"(?:(?:step|grand|god)?(?:mom|mum|mother|dad|father|son|daughter|parents?)|sisters?|brothers?"
    r"|siblings?|wife|husband|partner"
    r"|girlfriend|boyfriend|fianc[ée]e?|spouse|kids?|child(?:ren)?|toddler|baby|twins?|grand(?:ma|pa|child"
    r"|children|parents)|aunt|uncle"
    r"|cousins?|niece|nephew|friends?|flatmates?|roommates?|neighbou?rs?|colleagues?|boss|manager"
    r"|therapist|doctor|family|in-laws?"
    r"|dogs?|cats?|pets?|pupp(?:y|ies)|kittens?|horse|parrot|rabbits?|hamsters?)"
)
_ADVERBS = (
    r"(?:(?:also|always|usually|often|now|never|really|still|strongly|strictly|generally|mostly|mainly"
    r"|currently|only|actively|absolutely"
    r"|personally|definitely|simply|just|both|even|normally|typically|particularly|especially|actually"
    r"|firmly|fully|honestly|recently|finally|once|truly"
    r"|highly|deeply|severely|not|no longer|already|do|don['’]t|do not|can['’]t|cannot|can|could|must"
    r"|mustn['’]t|have to|had to) )*"
)
_TASK_THINGS = (
    r"(?:question|problem|issue|doubt|request|list|table|data ?frames?|file|function|class|struct|column"
    r"|code|error|bug|idea|feeling|look|chance"
    r"|minute|second|moment|string|array|variable|script|query|dataset|model|loop|regex|component|test"
    r"|sentence|text|paragraph|essay"
    r"|apples?|oranges?|coins?|marbles?|guess|go|clue|point|good (?:handle|idea|grasp)|hard time|lot|bit"
    r"|number|graph|matrix|equation|sample"
    r"|headache|cold|fever|hangover|options?|choice|luck|another|template|prompt|document|article|draft"
    r"|version|button|page|task|exercise|it|that|this|one|them|no idea|to)\b"
)
_PASSING = (
    r"(?:so+|kinda|sorta|kind of|sort of|eager|torn|conflicted|supposed|feeling|pretty|quite|unsure|fairly"
    r"|struggling|so|really|very|just|too|super|sure|sorry|here|there|all|ready|back|up|good|fine(?! with)"
    r"|okay|ok|alright|well|better|gonna|going|done|stuck"
    r"|confused|lost|curious|wondering|trying|getting|looking|asking|thinking|talking|referring|having"
    r"|seeing|writing|making|doing|running"
    r"|building|using|creating|telling|hoping|happy|sad|glad|proud|grateful|thankful|excited|nervous"
    r"|worried|stressed|upset|angry|frustrated"
    r"|disappointed|tired|overwhelmed|relieved|impressed|amazed|bored|hungry|late|busy|open|definitely"
    r"|totally|aware|able|about|in a hurry"
    r"|an? (?:idiot|fool|mess|moron|bit|little|genius|lot|dummy|beginner in this)|the (?:one|same|best"
    r"|worst|only)|on it|with you|not sure"
    r"|not really|afraid (?:that|so|not)|at \d|\d+ (?:minutes?|mins?|hours?|km|miles|steps?|percent)"
    r"|outside|inside|downstairs|upstairs|new here|home|afraid (?:it|i|the|this)"
    r"|on the (?:first|second|third|next|last|same|other|right|wrong|page|phone|train|bus|way)"
    r"|in the (?:settings|menu|app|meeting|car|office|kitchen|same|bath)|at a loss|off to|out of|in (?:the"
    r"|a) (?:middle|mood|hurry)|at the (?:moment|end|point)|like)\b"
)
_DOES = (
    r"(?:play|ride|learn|speak|study|live|drive|eat|drink|smoke|vape|teach|swim|jog|collect|wear|cook|bake"
    r"|garden|paint|sing|dance|knit|sew|surf|climb|ski"
    r"|cycle|hike|commute|volunteer|meditate|practi[sc]e|prefer|hate|dislike|detest|loathe|despise|avoid"
    r"|refuse|prioriti[sz]e|favou?r|love|like|enjoy"
    r"|adore|stand|bear|tolerate|work|run|own|rent|earn|weigh|suffer|belong|support|follow|believe in"
    r"|oppose|boycott|struggle|depend|rely|manage"
    r"|lead|grew up|was born|come from|used to|stopped|gave up|quit|specialize|specialise|major|breed"
    r"|raise|keep|grow|invest|appreciate|value"
    r"|care|tend|opt|lean|insist|make (?:it a point|sure)|miss|trust|read|watch|listen|attend"
    r"|get (?:seasick|carsick|migraines|hives|sick)|react"
    r"|give (?:\w+ )?lessons|take|use|wake|sleep|go|travel|fly|walk|exercise|train|find"
    r"|feel (?:uncomfortable|anxious|uneasy|overwhelmed|most comfortable)|react|fear|dread)"
)
# A thing that the user does with the task at hand.
_TASK_DOING = (
    r"(?:use|used|take|find|found|read|run|go|keep|watch|manage|follow|get|love|like|enjoy|appreciate|miss"
    r"|trust|work|feel) "
    r"(?:it|this|that|these|those|them|how|what|your|the (?:following|same|above|code|function|result"
    r"|first|second|answer|idea|way|one)|into|through"
    r"|on (?:it|this|that|a (?:script|function|report))|for me)\b"
)
HABIT = re.compile(
    rf"^(?:I|we|my {_KIN}(?: [A-Z]\w+)?(?: and I)?|(?:he|she|they)) {_ADVERBS}(?!{_TASK_DOING}){_DOES}(?:s"
    rf"|es)?\b"
    r"|^(?:I['’]ve|I have|we['’]ve|we have) (?:always|never|been|used to|had|long)\b(?! (?:trying"
    r"|working on|getting|looking|wondering|told|able|thinking|using (?:it|this)))"
    r"|^(?:I|we) (?:always|never|only|usually|rarely|hardly ever|mostly|normally) (?!(?:forget|wondered?"
    r"|thought|see|saw|have a|get|got|know|knew|heard|need|want|had|said|mean|asked?|tried|just|it|that"
    r"|this)\b)[a-z]+ (?!(?:it|this|that|them)\b)\w"
    r"|\b(?:every|each) (?:day|morning|evening|night|week|month|year|(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)day)\b"
    r"|\b(?:on|at|my) (?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends)\b|^(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)days\b"
    r"|\b(?:once|twice|\w+ times) a (?:day|week|month|year)\b|\bfor a living\b",
    _ANY_CASE,
)
STATE = re.compile(
    rf"^I(?:['’]m| am) {_ADVERBS}(?!{_PASSING})(?!\w+ing\b)\w|^I(?:['’]m| am) back (?:home )?(?:in"
    rf"|from) (?:[A-Z]|holiday|vacation)"
    r"|^I(?:['’]m| am) (?:also |now |currently |still |actually |slowly |just )*(?:learning|studying"
    r"|training|working|living|teaching|saving|moving|getting married"
    r"|expecting|freelancing|seeing a|seeing my|taking \w+|planning|considering|recovering|renting|leading"
    r"|running (?:a|for|my)|trying to (?:lose|quit|eat|get"
    r"|become|learn|save|cut)|preparing for|applying|pursuing|raising|using (?!this|it|that|the (?:code"
    r"|function|following))\w|giving (?:a|up)|turning \d"
    r"|looking for a (?:job|flat|house|partner|new (?:job|flat|house|place))|going (?:through|to be|vegan"
    r"|back|alone|by)|dating|visiting"
    r"|used to \w+ing|thinking (?:of|about) (?:moving|leaving|quitting|getting a|buying|changing|becoming"
    r"|going|retiring|adopting|having|starting)|doing (?:a|my) (?:phd|master|degree|internship"
    r"|apprenticeship))\b"
    r"|^(?:we['’]re|we are) (?!{_PASSING})(?:on \w|using|running|a \w|an \w|based|planning|expecting"
    r"|moving|getting|having|not allowed|limited|stuck (?:on|with)|three|two|four"
    r"|vegan|vegetarian|both|located|from|in [A-Z])".replace("{_PASSING}", _PASSING),
    _ANY_CASE,
)
OWNS = re.compile(
    rf"^(?:I|we)(?:['’]ve| have)? {_ADVERBS}(?:have|had|got|own|keep|bought|adopted|has) "
    rf"(?:an?|one|two|three|four|five|six|\d+|no|many|several|some|my|our|about \d+|around \d+|high|low"
    rf"|type|chronic|severe|bad|weak|strong) (?!{_TASK_THINGS})(?:[\w'’-]+ ){{0,2}}?(?!{_TASK_THINGS})\w"
    rf"|^(?:I|we) {_ADVERBS}have (?!{_TASK_THINGS}|been|had|always|never|the|some|any|tried|it|an?|no|\d"
    rf"|\w+ed|to|this|these|those|one|only|just|gone|done|seen|got)(?:[a-z]+ )?\w+",
    _ANY_CASE,
)
OF_MINE = re.compile(
    rf"^(?:(?:most|all|some|both|one|two) of )?(?:my|our) (?!(?:code|question|function|program|script|query"
    rf"|problem|issue|bad|point|guess|mistake|text|essay|sentence|error|file|bet|data|table|output|result"
    rf"|reviewer|internet|parcel|package|flight|order|brain|head|mind|goodness|god|advice|turn|thoughts?"
    rf"|screen|washing machine|train|bus|taxi|answer|battery|first (?:guess"
    rf"|try))\b)(?:[\w'’&-]+ ){{1,5}}?(?:is|are|was|were|has|have|had|lives?|works?|turns?|runs?|uses?"
    rf"|wants?|expires?|ends?|starts?|hates?|loves?|likes?|dislikes?|prefers?|needs?|can(?:['’]t|not)?"
    rf"|does(?:n['’]t| not)|takes?|moved|died|comes?|allows?|supports?|requires?)\b"
    rf"|^(?:my|our) (?:(?:little|older|younger|big|best|new|old|late"
    rf"|eldest) )?{_KIN}\b(?:,? [A-Z]\w+)?,? (?!and I (?:have a question|wonder))[a-z]",
    _ANY_CASE,
)
LIFE = re.compile(
    r"^(?:I|we|my \w+(?: [A-Z]\w+)?(?: and I)?)(?:['’]ve| have| has)? (?:just |recently |finally |also "
    r"|already |even |now )*"
    r"(?:moved|relocated|adopted|got (?:married|engaged|divorced|promoted|fired|laid off|(?:a|an|the|my"
    r"|our) (?:new )?(?:job|dog|cat|puppy|kitten|car|house|flat|place|promotion|tattoo|degree|scholarship"
    r"|grant|offer|visa|apartment|licen[cs]e|keys|results?)|into \w)"
    r"|married|divorced|broke up|split up|separated|quit|left|resigned|retired|joined|graduated"
    r"|dropped out|passed|failed my|broke (?:my|an?|his|her)|was diagnosed|were diagnosed|was promoted"
    r"|was (?:fired|laid off|hospitali[sz]ed|robbed|born)|was stolen|sold (?:my|our|the)|bought (?:a|an|my"
    r"|our|the)|won|lost (?:my|our|\d)|signed up|enrolled|booked|applied|had (?:a (?:son|daughter|baby"
    r"|girl|boy|stroke"
    r"|heart|miscarriage|surgery|knee|hip|accident|car)|an? (?:operation|accident|surgery)|surgery)"
    r"|gave birth|gave up|stopped|started|founded|opened|launched|published|visited|switched|migrated"
    r"|upgraded|decided"
    r"|settled on|chose|agreed|postponed|cancelled|canceled|reached|moved out|passed away|died|survived"
    r"|recovered|became|lived|worked|studied|taught|spent|served|grew up|was an?|were an?|travel+ed"
    r"|flew to|(?:went|met|had (?:dinner|lunch|coffee)) [^.]{0,40}?(?:with|to) (?:my\b|our\b|[A-Z])"
    r"|turned \d|hired|divorced|inherited|emigrated|immigrated|converted)\b"
    r"|^I (?:just |finally |recently )?(?:got|came|am|have been) back (?:home )?from\b|^I (?:just "
    r"|finally |recently )?returned from\b"
    r"|^(?:sold|bought|moved|quit|left|adopted|married|passed|graduated|started|joined|switched|upgraded"
    r"|migrated|booked) (?:my|our|the|a|an|to|from|out|in|on)\b"
    r"|\b(?:died|passed away|was born|were born|was stolen|broke up|got married|got engaged)\b",
    _ANY_CASE,
)
LIMIT = re.compile(
    r"^(?:we|I|our \w+(?: \w+)?|the (?:team|company|cluster|server|client|customer|project|budget|deadline"
    r"|office))(?:['’]re|['’]m|['’]ve)? (?:are |is |am |have |has |had |only |can only |all |still |both "
    r"|mainly |mostly |do |currently |now |already )*"
    r"(?:on (?:\w+ )?\w*\d|not allowed|allowed only|can(?:['’]t|not) (?:use|upgrade|install|eat|drink|have"
    r"|afford|change|deploy|access|run|drive|ride|fly|swim|take|wear|lift)|can(?:['’]t|not) (?!wait"
    r"|believe|find|see|get|figure|remember|open|log|connect|help|understand|tell|do|make|seem|think|say"
    r"|imagine|decide|complain|stop|thank|be|go on)\w+|must (?:not )?(?:use|be|run|support|stay|keep)"
    r"|only (?:use|have|support|allow)|have only|don['’]t (?:have|use|allow|own|eat|drink|smoke|drive"
    r"|answer|want (?:any|to \w+ (?!it\b|this\b|that\b)))|(?<!I )use |(?<!I )run |runs |deploy|host"
    r"|have to (?:use|support|stay|be|avoid)|need to (?:support|stay|avoid)"
    r"|decided|agreed|switched|moved to|migrated|upgraded|standardi[sz]ed|settled on|went with|is \d"
    r"|\d+ (?:euros?|dollars?))",
    _ANY_CASE,
)
WANTS = re.compile(
    r"^I(?:['’]d| would)? (?:really |also |always |just |still |one day |eventually "
    r"|definitely )*(?:want to|wanna|hope to|plan to|dream of|am hoping to|love to|like to|wish I could"
    r"|long to|intend to|aim to) "
    r"(?:one day |eventually |finally |also )*(?:be(?:come)?|learn|study|get (?:better|fit|in shape"
    r"|married|a (?:job|degree|dog|cat))|improve|travel|visit|move|live|start (?:a|my|an)|run (?:a|my|the)"
    r"|lose|quit|stop (?:smoking|drinking|eating)|save|retire"
    r"|have (?:kids|a (?:family|baby|dog|garden))|grow|build (?:a|my) (?:house|career|company|business)"
    r"|buy (?:a|my) (?:house|flat|home|car|boat)|write a (?:book|novel)|work (?:as|in|for|abroad)|go to"
    r"|see|sail|sing|play|teach|open (?:a|my)|own|climb|cut"
    r"|eat (?:less|more|health)|sleep|speak|join|adopt|apply|graduate|practi[sc]e)\b"
    r"|^my (?:big(?:gest)? |main |long-term )?(?:dream|goal|plan|aim|wish)\b|^I(?:['’]d| would) (?:love"
    r"|like|prefer) (?!to (?:know|see|ask|hear|change|book|have (?:a|it)|add|get it)\b|it\b|that\b|you\b"
    r"|your\b|some\b|an? (?:answer|list|quick))\w",
    _ANY_CASE,
)
_TASTE = AnyCase(
    r"\b(?:favou?rite|prefer(?:ence|red)?s?|allergic|intolerant|can['’]t stand|can['’]t bear|not a fan"
    r"|big fan|a fan of|not into|into \w+ing|my thing|weak spot|passionate about|fond of|obsessed with"
    r"|addicted to|averse to|against \w+ing"
    r"|due to my|because of my|priority for me|important to me|matters to me|deal-?breaker|non-negotiable)\b"
)
_AND_I = re.compile(
    r"^(?:I and my [\w'’-]+(?: (?-i:[A-Z])\w+)?|(?:my [\w'’-]+(?: (?-i:[A-Z])\w+)?|(?-i:[A-Z])\w+) and I)\b",
    _ANY_CASE,
)
_FIRST = re.compile(r"\b(?:I|I['’]\w+|my|me|we|we['’]\w+|our|us)\b", _ANY_CASE)
_LIKES = re.compile(
    r"^I (?:really |just |also )?(?:love|hate|like|enjoy|prefer|can['’]t stand) (?!it\b|this\b|that\b"
    r"|how\b|your\b)\w",
    _ANY_CASE,
)
_AT_HAND = re.compile(
    r"^(?:I|we)(?:['’]\w+| am| are| have| had)? (?:\w+ly |just |also |always |only |never |now |already "
    r"|still )*\w+ (?:up |off |out |on |to |for |with )?(?:it|this(?! (?:year|month|week|weekend|spring"
    r"|summer|autumn|fall|winter|morning)\b)|that|these|those|them|(?:over|on)\W*$)(?! \w+ (?:is"
    r"|are)\b)(?! (?:a|the|my|our|hold|to|top|fire) )"
    r"|\b(?:the|a|an|that|two|some|no|one|my)(?: (?:first|second|third|last|next|same|wrong|right|other"
    r"|new|old|whole))? (?:files?|server|process|app|calls?|page|end|tickets?|buttons?|options?|methods?"
    r"|seat|arguments?|comments?|settings?|steps?"
    r"|links?|fields?|lines?|rows?|columns?|keys?|values?|window|tab|menu|screen|box|results?|answers?"
    r"|build|branch|commit|container|command|terminal|lights?|cable|password|connection|train of thought"
    r"|minute|moment|ones?)\b",
    _ANY_CASE,
)
_FLEETING = re.compile(
    r"\b(?:right now|rn|at the moment|today|tonight|this (?:morning|afternoon|evening)|for now"
    r"|in a (?:minute|sec|bit)|in \d+ min\w*|just now)\b",
    _ANY_CASE,
)
_ABOUT_TASK = re.compile(
    r"\b(?:this (?:code|function|error|text|sentence|file|works?|looks?|chat|problem|question)|the (?:code"
    r"|error|output|answer|result|function|padding|button)|your (?:answer|code|suggestion|help|service)"
    r"|it (?:works|worked|crashes|fails|says|does))\b",
    _ANY_CASE,
)


_FEELS = re.compile(
    rf"^(?:I|we)(?:['’]m|['’]re| am| are|['’]ve been| have been| was| were| feel"
    rf"| felt)? {_ADVERBS}(?:kinda |sorta |a bit |a little |pretty |quite |so+ |very |super |totally "
    rf"|feeling )*"
    r"(?:excited|happy|sad|glad|proud|grateful|thankful|tired|nervous|worried|stressed|upset|angry|bored"
    r"|hungry|thirsty|busy|ready|sure|sorry|fine|okay|ok|good|great|well|better|lucky|blessed|overwhelmed"
    r"|relieved|exhausted|scared"
    r"|stoked|thrilled|pumped|furious|amazed|impressed|confused|stuck|lost|curious|here|there|off|done"
    r"|late|early|on (?:it|my way))\b(?![^.]{0,80}\b(?:my|our|of|with|[A-Z][a-z]+)\b)"
    r"|^(?:my|our) (?:brain|head|mind|heart|goodness|god|bad|point|turn|pleasure|internet|flight|parcel"
    r"|order|washing machine|computer|phone|screen|app|page|advice|thoughts?)\b(?! (?:condition|surgery"
    r"|hurts))"
    r"|^(?:I|we)(?:['’]ve| have)? (?:don['’]t |do not )?(?:have|got|need|want) (?:(?:a|an|the|some|any"
    r"|much|enough) )?(?:\w+ )?(?:ones?|it|lot|lot of time|time|idea|clue|bit|sec|minute|fun|blast)\W*$"
    r"|^(?:I|we) (?:don['’]t|do not) have (?:a lot of |much |any )?time\b"
    r"|^(?:my|our) (?:[\w'’-]+ ){1,3}(?:says?|said|wrote|writes|asked|told|thinks)\b[^.]{0,20}[\"“:]",
    _ANY_CASE,
)
_PASSES = re.compile(
    r"^(?:I|we)(?:['’]ll| will| won['’]t| should| gotta| have to| need to| must| can| could| might| may"
    r"| hope| guess| think| know| believe| bet| wish| mean| see| understand| agree| appreciate)\b(?!['’])",
    _ANY_CASE,
)


_DID = re.compile(
    r"\b(?:I|we)(?:['’]ve| have)? (?:just |also |finally |both )?"
    r"(?:went(?! (?:to (?:bed|sleep|work|the (?:store|shop|office|bathroom))|shopping|home|through|over"
    r"|ahead|with|on|back)\b)|ran(?! (?:into|out|it|the|a|this|my (?:code|tests?|script)))"
    r"|swam|met|rode|sang|played|visited|attended|hiked|walked|trained|climbed|volunteered|painted|rowed"
    r"|joined|baked|cycled|danced|practi[cs]ed|skated|jogged|fished|had (?:an? |my |our )(?:\w+ ){0,2}"
    r"(?:lesson|class|appointment|check-?up|interview|date|game|match|exam|party|training))\b",
    _ANY_CASE,
)


def tells_of_activity(sentence: str) -> bool:
    """Whether a sentence tells what the user has done, of a kind that people remember by its day."""
    return bool(_DID.search(sentence)) and not _ABOUT_TASK.search(sentence)


def is_worth_keeping(sentence: str, is_dated: bool) -> bool:
    """Whether a sentence in the first person, or about somebody close to the user, is worth an entry.

    `is_dated`: whether it names a day or a period, other than the day on which it is said.
    """
    sentence = _AND_I.sub("We", sentence)
    if not _FIRST.search(sentence) or any(
        pattern.search(sentence) for pattern in (_ABOUT_TASK, ASKING, _FEELS)
    ):
        return False
    if concerns_health(sentence):
        return True
    if _FLEETING.search(sentence) and not is_dated:
        return False
    if OF_MINE.search(sentence) or LIMIT.search(sentence) or _TASTE.search(sentence):
        return True
    if _AT_HAND.search(sentence):
        return False
    return is_dated or any(kind.search(sentence) for kind in (STATE, OWNS, HABIT, LIFE, WANTS))


def tells_something(sentence: str) -> bool:
    """Whether a sentence tells more than a feeling of the moment, an opinion in passing, or a next step."""
    passing = (_FEELS, _PASSES, _ABOUT_TASK, ASKING)
    return not any(pattern.search(sentence) for pattern in passing)


def tells_of_life(sentence: str) -> bool:
    """Whether a sentence tells of a change in the user's life, or of a liking."""
    return bool(LIFE.search(sentence) or _LIKES.search(sentence)) and not _AT_HAND.search(sentence)
