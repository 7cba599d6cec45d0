"""Recognizes texts about health and safety, which must not be lost."""

from .any_case import AnyCase

_ENGLISH = (
    r"allerg\w*|anaphyla\w*|epi-?pens?|intoleran\w+|c(?:o)?eliac|gluten|lactose|diabet\w+|insulin|asthma\w*"
    r"|inhaler|epilep\w+|seizures?|pacemaker|pregnan\w+|breastfeeding|blood (?:type|pressure|thinners?|sugar)"
    r"|medications?|medicines?|antidepressants?|prescri\w+|cancer|chemo\w*|tumou?r|h[ae]mophili\w+"
    r"|heart (?:condition|disease|attack|failure|problems?)|stroke|HIV|hepatitis|kidney|dialysis|migraines?"
    r"|arthritis|crohn['’]?s|lupus|parkinson['’]?s|multiple sclerosis|thyroid|an[ae]+mi[ac]\w*|dementia"
    r"|depress(?:ion|ed)|bipolar|schizophreni\w+|PTSD|ADHD|autis\w+|anxiety|panic attacks?|eating disorder"
    r"|suicid\w+|self-harm\w*|abus(?:e|ed|ive)|stalk(?:er|ed|ing)|restraining order|alcoholi\w+|sober"
    r"|addict\w*"
    r"|disab(?:led|ility|ilities)|wheelchair|deaf|blind|hearing aids?|amput\w+|implant\w*|immunocompromised"
    r"|chronic\w*|disease|disorder|syndrome|emergency contact|(?:have|has|need|needs) to avoid"
    r"|can(?:['’]?t|not) (?:eat|drink|have|take|hear|see|walk|swim)|must(?:n['’]t| not) (?:eat|drink|take)"
)
_CHINESE = (
    "过敏|不耐受|乳糜泻|糖尿病|胰岛素|哮喘|癫痫|心脏|高血压|低血压|血糖|血型|起搏器|怀孕|孕妇|哺乳|忌口|服用|吃药|用药"
    "|癌|肿瘤|化疗|中风|艾滋|肝炎|肾|透析|偏头痛|关节炎|甲状腺|贫血|抑郁|双相|精神分裂|自闭|焦虑症|惊恐|自杀|自残"
    "|家暴|虐待|跟踪|酗酒|戒酒|残疾|轮椅|失聪|失明|聋|盲|助听器|慢性|[^毛]病(?!毒软件)|紧急联系人|不能[吃喝碰用]"
)
_HEALTH = AnyCase(rf"\b(?:{_ENGLISH})\b", _CHINESE)


def concerns_health(text: str) -> bool:
    """Whether a text names an allergy, an illness, a medicine, a disability or a danger."""
    return _HEALTH.search(text)
