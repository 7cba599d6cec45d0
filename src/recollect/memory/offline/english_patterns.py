"""Patterns that classify English sentences: those to ignore, and what the others are about."""

import re

_ANY_CASE = re.IGNORECASE

INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|rules?|prompts?"
    r"|guidelines|training|polic(?:y|ies))\b"
    r"|^\W{0,4}(?:system|assistant|developer)\s?(?:prompt|message|note)?\s?[:\]>]|<\|?/?(?:im_start"
    r"|system|assistant)|\[/?INST\]"
    r"|\b(?:add|save|store|write|put|insert|record|commit)\b.{0,40}\b(?:to|in|into|as)\s(?:your |the |a "
    r"|long-term )*memor(?:y|ies)\b"
    r"|\b(?:store|save|record|add|note|remember)\b.{0,20}\bthat\b.{0,60}\b(?:admin(?:istrator)?|root"
    r"|superuser|authori[sz]ed|developer mode)\b"
    r"|\bupdate (?:your|the) memory\b|\byou are now\b|\bfrom now on,? you\b|\bpretend (?:to be|that you"
    r"|you)\b"
    r"|\bnew instructions?\b|\bdeveloper mode\b|\bjailbreak|\b(?:reveal|print|show"
    r"|repeat) (?:me )?your (?:system )?(?:prompt|instructions)\b",
    _ANY_CASE,
)
ORDER = re.compile(
    r"^(?:please )?(?:store|save|record|add|write|insert|set|mark|treat|grant|give|delete|erase)\b", _ANY_CASE
)
# What follows such a request is a text to work on, not a statement of the user.
_WORK = (
    r"(?:(?:translate|rewrite|rephrase|paraphrase|reword|summari[sz]e|proofread|proof-read|polish|shorten)\b"
    r"|edit\b(?! ?:)|(?:fix|correct|check|improve) (?:the |my |any )?"
    r"(?:grammar|spelling|typos?|wording|punctuation|english)\b"
    # Only with a text after it: "Check this out!" is no such request.
    r"|(?:fix|correct|check|improve|revise|make) (?=(?:this|these|the following|my)\b[^.!?:]{0,60}:))"
)
_ASKED = (
    r"(?:please |kindly |can you |could you |would you |will you |i (?:need|want) you to |i['’]d like you to "
    r"|help me (?:to )?)*"
)
WORK = re.compile(rf"^{_ASKED}{_WORK}", _ANY_CASE)
WORK_BELOW = re.compile(
    rf"^{_ASKED}{_WORK}[^.!?:]{{0,80}}"
    r"(?::|\b(?:this|the following|below|these|text)\b[^:.!?]{0,60}(?:[:.?!]|$))",
    _ANY_CASE,
)
WORK_ABOVE = re.compile(rf"^{_ASKED}{_WORK}[^.!?:]{{0,80}}\b(?:this|that|the above|these)\b[^:]*$", _ANY_CASE)
HYPOTHETICAL = re.compile(
    r"^(?:suppose|supposing|assume|assuming|imagine|hypothetically|what if|let['’]?s (?:say|assume|pretend))"
    r"\b"
    r"|^if (?:i|we) (?:were|was)\b|^if\b[^.!?]{1,120}(?:\b(?:would|could|might)\b|\b\w+['’]d\b)"
    r"|(?:\bwould|['’]d|\bcould|\bmight) (?!love\b|like\b)[^.!?]{1,100}"
    r"\bif (?:i|we|my \w+) (?:were|was|had|could)\b",
    _ANY_CASE,
)
# "I think so" and "I don't have one" say nothing without the question.
BARE = re.compile(
    r"^i (?:think|hope|guess|believe|suppose|bet|know|said|did|do|am|have|can|will|would|could|don['’]t"
    r"|didn['’]t|can['’]t|haven['’]t|won['’]t)"
    r"(?: (?:think|know|have|want|need|do|see|mind|remember|get))?(?: (?:so|not|one|it|that|this|any|them"
    r"|too|either|yet|why|how|what))*[.!]*$"
    r"|^(?:if|unless|in case) (?!(?:i|we) (?:eat|drink|take|touch|have (?:an?|my)|forget)\b)|^not really\b"
    r"|^i (?:meant|mean|misspoke)\b|^got it\b|^i (?:see|got it|get it)\b",
    _ANY_CASE,
)
FLEETING = re.compile(
    r"^i(?:['’]m| am) (?:(?:so|really|very|just|a bit|a little|currently|still|getting|super|too) )*"
    r"(?:hungry|starving|thirsty|sleepy|bored|freezing|cold|hot|full|late|busy"
    r"|on my way(?: (?:home|to work|back))?)"
    r"(?:,? (?:right now|now|at the moment|today|again|already))?[.!]*$"
    r"|^i(?:['’]m| am) (?:at|on|in) [^,.]{1,40} (?:right now|at the moment)[.!]*$",
    _ANY_CASE,
)
RECALLED = re.compile(
    r"\b(?:as|like) (?:you|u) (?:said|mentioned|noted|recalled|remember(?:ed)?|told|wrote|know"
    r"|already know)\b"
    r"|\byou(?:['’]re| are) (?:right|correct)\b|\byou (?:remember(?:ed)?|recalled|got (?:it|that) right)\b",
    _ANY_CASE,
)
COURTESY = re.compile(
    r"^(?:thanks?|thank you|thx|no (?:problem|worries)|you['’]?re welcome|welcome|bye|goodbye"
    r"|good (?:night|morning|luck|to see)"
    r"|see (?:you|ya)|talk (?:to you )?(?:soon|later)|ttyl|take care|have (?:a|fun)|catch you"
    r"|hope (?:you|all|this|everything)"
    r"|(?:it['’]s |so )?(?:great|good|nice|lovely) (?:to (?:see|hear|chat|talk|meet)|hearing|seeing"
    r"|chatting|talking)|long time no"
    r"|how(?:['’]s| are| have| is)|what['’]s (?:up|new)|let me know|keep (?:it|me|up|going|in touch)"
    r"|stay (?:strong|safe|positive)"
    r"|congrat|happy (?:for|birthday|to help)|(?:so |really |super )?glad|(?:i['’]m |i am )?(?:so "
    r"|really |super |very )*(?:glad|happy|proud|excited|thrilled|stoked|sorry)"
    r" (?:for you|of you|you|to hear|to see you|that you|about that|your)"
    r"|(?:so |really |super |very )*proud of (?:you|us)|i hope (?:you|it|all|that)|(?:i['’]m"
    r"|i am) (?:always )?(?:here|rooting|sure)\b"
    r"|i (?:really |totally |completely |definitely |definetly )*(?:agree|appreciate (?:it|you|that|the"
    r"|your)|bet|can imagine|can tell|see|know(?:,? right)?\W*$|understand|get (?:it|that)|feel you"
    r"|believe in you|couldn['’]t agree)|can['’]t wait to (?:hear|see (?:you|it|what|your|how))"
    r"|i can['’]t wait to (?:hear|see (?:you|it|what|your|how))"
    r"|appreciate|fingers crossed|best of luck|enjoy|cheers|wish(?:ing)? (?:you|me luck)|will do"
    r"|sounds?\b|looking forward to (?:it|hearing|seeing you|your)"
    r"|i['’]ll (?:let you know|keep (?:you|that)|definitely (?:do|check|keep|let)|check it out|try (?:it"
    r"|that)|do that|be (?:here|there))|sure thing|of course)\b",
    _ANY_CASE,
)
REACTION = re.compile(
    r"^(?:that(?:['’]s| is| was| sounds?| must| looks?| would| really| makes sense| picture| photo"
    r"| pic\b|['’]d|['’]ll)|those (?:are|look|sound)|these look"
    r"|what an? |how (?:\w+)[!.]|so (?:cool|nice|sweet|true|cute|inspiring|awesome|amazing|great)|(?:wow"
    r"|cool|nice|awesome|amazing|great|love (?:that|this|it|your))\b"
    r"|it(?:['’]s| is| must be| sounds| looks| seems) (?:so |really |very |super |truly |always "
    r"|such an? |an? )*"
    r"(?:great|awesome|amazing|cool|nice|wonderful|important|inspiring|fantastic|true|good|incredible"
    r"|beautiful|lovely|sweet|clear|key|crucial|essential|worth|okay|ok|fine)\b"
    r"|must (?:be|have)|looks? (?:like|so|great|amazing|awesome|delicious)|totally|definitely|absolutely"
    r"|exactly)",
    _ANY_CASE,
)
TO_THE_OTHER = re.compile(
    r"^(?:you|your|you['’]\w+|u|let['’]?s|lets|don['’]t|keep|tell|check|take|try|look|see|remember"
    r"|just remember|go|stay|believe|hang|show|send|here['’]s to"
    r"|i (?:need|want|would like|have) (?:your |some |a )?(?:help|you to|question)|i was wondering"
    r"|i['’]d like you"
    r"|imagine|trust|be |do |make sure|never (?:give|forget)|please|give|feel free|have you|did you"
    r"|do you|are you|is your|would you|could you|can you|any )\b",
    _ANY_CASE,
)
_FEELING = (
    "happy|sad|glad|proud|grateful|thankful|excited|stoked|thrilled|nervous|anxious|worried|afraid|scared"
    "|stressed|upset|angry|frustrated|disappointed|lonely|tired|overwhelmed|relieved|hopeful|optimistic"
    "|inspired|motivated|passionate|interested|curious|keen|determined|lucky|blessed|amazed|impressed"
    "|obsessed"
)
_PASSING = (
    "so|really|very|just|too|super|sure|sorry|here|there|always|all|ready|back|up|in|on|at|good|fine|okay|ok"
    "|alright|well|better|gonna|sunk|open|definitely|totally|absolutely"
)
# Who somebody is, and what they have, like and do, in a few words that are worth remembering.
PLAIN = re.compile(
    r"^I(?:['’]m| am) (?:(?:also|now|not|currently|still|originally|severely|highly|even|more) )*+"
    rf"(?!(?:{_FEELING}|{_PASSING})\b|\w+ing\b|\d+ ?%|over the moon)\w"
    r"|^I (?:(?:also|always|usually|often|now|never|do not|don['’]t|can['’]t|really|still) )*"
    r"(?:have (?:an?|one|two|three|four|five|\d+|no|many)|own|play|speak|study|live|drive|eat|drink|smoke"
    r"|was born|grew up|stand|bear|prefer|hate"
    r"|(?:like|love) (?!that|how|this|your|the way|seeing|hearing|it[.!]*$)"
    r"|want to|no longer|used to|work (?:at|as|for|in))\b"
    r"|^My (?:\w+ ){1,3}(?:is|are|was|has|have|lives?|works?) ",
    _ANY_CASE,
)
# Feelings, wishes, opinions and likings.
MIND = re.compile(
    r"\b(?:i|we)(?:['’](?:m|d|ve|re)| am| have| had| would| was| were| are)? (?:[\w'’]+ ){0,3}?(?:love[ds]?"
    r"|lik(?:e|ed)|enjoy(?:ed|ing)?|adore|hate[ds]?|dislike|prefer|want(?:ed)?|wish(?:ed)?|hop(?:e|ed"
    r"|ing)"
    r"|feel(?:ing)?|felt|think|thought|believe[ds]?|dream(?:ed|t|ing)?|miss(?:ed|ing)?"
    rf"|{_FEELING}"
    r"|into|fan|looking forward"
    r"|considering|tempted|thinking (?:about|of)|can['’]?t wait|afford|regret|trust|doubt|find it"
    r"|can['’]?t (?:stand|bear))\b"
    r"|\b(?:makes?|made|making|gives?|gave|brings?|brought|fills?|reminds?|helps?|helped|inspires?"
    r"|inspired|motivates?) me\b|\bmy (?:\w+ )?(?:favou?rite|dream|goal|passion|hope|wish|biggest fear"
    r"|opinion|happy place)\b"
    r"|\bmeans? (?:a lot|so much|the world|everything)\b|\b(?:in my opinion|to me,|for me,)"
    r"|^(?:can['’]?t wait|love|enjoy|hope|hoping|excited|looking forward|wish|feeling)\b",
    _ANY_CASE,
)
OVER = re.compile(r"\b(?:no longer|any ?more|used to|(?:stopped|quit|gave up|given up) \w+ing)\b", _ANY_CASE)
LEFT = re.compile(
    r"^(?:i|i['’]ve|i have)(?: (?:just|finally|recently))? (?:resigned|retired|quit (?:my|the) (?:\w+ )?job"
    r"|left (?:my|the) (?:\w+ )?job|(?:got|was|been) (?:fired|laid off)|lost my job"
    r"|quit working (?:at|for)|stopped working (?:at|for|as))\b",
    _ANY_CASE,
)
# What is wished for has not happened, and perhaps never will.
WISH = re.compile(
    r"\b(?:i|we)(?:['’](?:d|m|re)| would| am| are)? (?:(?:really|also|just|still|so|always|definitely) )*"
    r"(?:(?:love|like|prefer|want|hope|wish|long) to|hoping to|dream(?:ing)? (?:of|about)|hope|wish"
    r"|(?:thinking|dreaming) (?:of|about)|considering|tempted to|wanna)\b",
    _ANY_CASE,
)
DONE = re.compile(
    r"\b(?:i|we|my \w+|our \w+|he|she|they|it)(?: \w+ly| just| also| finally| recently| even"
    r"| already)? (?:was|were|did|had|went|got|took|made|gave|saw|met|found|bought|began|became|came|won"
    r"|lost|ran|wrote|read|left|felt|told|taught"
    r"|built|brought|sold|spent|fell|grew|kept|caught|broke|heard|thought|knew|drove|flew|rode|swam|sang"
    r"|ate|drank|slept|chose|paid|sent|put|set|hit|hurt|cut|quit|led|started|[a-z]{3,}ed)\b"
    r"|\b(?:i|we)(?:['’]ve| have) (?!(?:an?|the|my|our|some|no|two|three)\b)(?:\w+ ){0,2}?"
    r"(?!been\b|always\b|got\b|known\b|had\b)(?:[a-z]{3,}ed"
    r"|done|gone|made|taken|seen|found|won|lost|written|bought|met|started|begun|become|come|given|built"
    r"|set)\b"
    r"|\b(?:died|passed away|was born|gave birth|got (?:married|divorced|engaged)|ran away)\b"
    r"|\bjust (?:got|went|took|made|started|bought|met|had|found|won|lost|[a-z]{3,}ed)\b"
    r"|^(?:just |finally |recently |also )*(?:went|got|took|made|started|lost|found|bought|met|saw|had"
    r"|did|tried|finished|joined|won|passed|visited|attended|signed|adopted|moved|\w{3,}ed) (?:a|an|the"
    r"|my|some|to|up|in|back|with|from|on|off|out|into|our|for|this|hitting)\b",
    _ANY_CASE,
)
