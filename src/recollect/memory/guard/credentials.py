"""Keys and tokens that have a form of their own: cloud providers, models, developers' tools, payments."""

from .checksums import base58_check
from .patterns import SecretPattern, secret

_END = r"(?![\w-])"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

CREDENTIALS: tuple[SecretPattern, ...] = (
    # files and headers
    secret(
        "private key",
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]{0,20000}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[^-]{0,20000})",
    ),
    secret("age key", "age-secret-key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
    secret("JSON web token", "eyj", r"\beyJ[\w-]{8,4000}\.eyJ[\w-]{8,8000}\.[\w-]{8,2000}"),
    secret(
        "bearer token",
        "bearer",
        r"\bbearer\s+(?P<secret>(?=[\w.+/=~-]*\d)[\w.+/=~-]{20,4000})",
        any_case=True,
    ),
    # cloud providers
    secret("AWS access key", "akia asia abia acca", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    secret(
        "AWS secret key",
        "aws",
        r"\baws\w{0,20}secret\w{0,20}[\"']?\s*(?:[:=]"
        r"|is)\s*[\"']?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        any_case=True,
    ),
    secret("Google API key", "aiza", rf"\bAIza[\w-]{{35}}{_END}"),
    secret("Google OAuth secret", "gocspx-", rf"\bGOCSPX-[\w-]{{28}}{_END}"),
    secret("Google OAuth token", "ya29.", r"\bya29\.[\w-]{20,2000}"),
    secret("Azure storage key", "accountkey", r"\bAccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)"),
    secret("Azure client secret", "q~", r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    secret("DigitalOcean token", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    secret("Heroku key", "hrku-", rf"\bHRKU-(?:{_UUID}|[\w-]{{58,65}}){_END}"),
    secret("Cloudflare key", "v1.0-", r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{146}\b"),
    secret("Supabase token", "sbp_", r"\bsbp_[0-9a-f]{40}\b"),
    secret("PlanetScale credential", "pscale_", r"\bpscale_(?:tkn|pw|oauth)_[\w.-]{32,64}"),
    secret("Databricks token", "dapi", r"\bdapi[0-9a-f]{32}(?:-\d)?\b"),
    # models
    secret("Anthropic key", "sk-ant-", r"\bsk-ant-[\w-]{20,200}"),
    secret("OpenAI key", "sk-", r"\bsk-(?:(?:proj|svcacct|admin)-[\w-]{20,250}|[A-Za-z0-9]{32,64}\b)"),
    secret("OpenRouter key", "sk-or-", r"\bsk-or-v1-[0-9a-f]{64}\b"),
    secret("Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{30,40}\b"),
    secret("Groq key", "gsk_", r"\bgsk_[A-Za-z0-9]{52}\b"),
    secret("xAI key", "xai-", r"\bxai-[A-Za-z0-9]{70,90}\b"),
    secret("Replicate token", "r8_", r"\br8_[A-Za-z0-9]{37}\b"),
    secret("Perplexity key", "pplx-", r"\bpplx-[A-Za-z0-9]{48}\b"),
    # developers' tools
    secret("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b"),
    secret("GitHub fine-grained token", "github_pat_", r"\bgithub_pat_\w{22,255}"),
    secret("GitLab token", "glpat- gldt- glrt-", rf"\bgl(?:pat|dt|rt)-[\w-]{{20,64}}{_END}"),
    secret("Bitbucket password", "atbb", r"\bATBB[A-Za-z0-9]{28,36}\b"),
    secret("Atlassian token", "atatt3", r"\bATATT3[\w=-]{100,250}"),
    secret("npm token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    secret("Python package index token", "pypi-", r"\bpypi-AgE[\w-]{50,1000}"),
    secret("RubyGems key", "rubygems_", r"\brubygems_[0-9a-f]{48}\b"),
    secret("Docker token", "dckr_pat_", rf"\bdckr_pat_[\w-]{{27}}{_END}"),
    secret("Vault token", "hvs. hvb.", r"\bhv[sb]\.[\w-]{24,300}"),
    secret("Terraform token", ".atlasv1.", r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}"),
    secret("Doppler token", "dp.", r"\bdp\.(?:pt|st|ct|sa)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}\b"),
    secret(
        "Grafana token",
        "glsa_ glc_",
        r"\b(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,400}={0,2})",
    ),
    secret("New Relic key", "nrak-", r"\bNRAK-[A-Z0-9]{27}\b"),
    secret("Sentry token", "sntrys_ sntryu_", r"\bsntry[su]_[\w+/=-]{40,400}"),
    secret("Postman key", "pmak-", r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b"),
    secret("Linear key", "lin_api_", r"\blin_api_[A-Za-z0-9]{40}\b"),
    secret("Notion token", "ntn_ secret_", r"\b(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})\b"),
    secret("Airtable token", "pat", r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b"),
    secret("Figma token", "figd_", rf"\bfigd_[\w-]{{40,44}}{_END}"),
    # messages
    secret("Slack token", "xox xapp-", r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,300}"),
    secret(
        "Slack webhook",
        "hooks.slack",
        r"\bhooks\.slack\.com/(?P<secret>services/T\w{6,14}/B\w{6,14}/\w{16,40})",
    ),
    secret("Discord token", ".", rf"\b[MNO][\w-]{{23,27}}\.[\w-]{{6}}\.[\w-]{{27,38}}{_END}"),
    secret("Discord webhook", "/api/webhooks/", r"/api/webhooks/(?P<secret>\d{17,20}/[\w-]{60,72})"),
    secret("Telegram token", ":aa", rf"(?<!\w)\d{{8,10}}:AA[\w-]{{33}}{_END}"),
    secret("Twilio key", "sk", r"\bSK[0-9a-f]{32}\b"),
    secret("SendGrid key", "sg.", rf"\bSG\.[\w-]{{22}}\.[\w-]{{43}}{_END}"),
    secret("Mailgun key", "key-", r"\bkey-[0-9a-z]{32}\b"),
    secret("Mailchimp key", "-us", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    # payments and shops
    secret("Stripe key", "_live_ _test_", r"\b[srp]k_(?:live|test)_[0-9A-Za-z]{16,250}\b"),
    secret("Stripe webhook secret", "whsec_", r"\bwhsec_[A-Za-z0-9+/]{24,80}={0,2}"),
    secret("Square token", "sq0", rf"\bsq0(?:atp-[\w-]{{22}}|csp-[\w-]{{43}}){_END}"),
    secret(
        "Braintree token",
        "access_token$",
        r"\baccess_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}\b",
    ),
    secret("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b"),
    secret(
        "Bitcoin private key",
        "5 k l",
        r"\b(?:5[1-9A-HJ-NP-Za-km-z]{50}|[KL][1-9A-HJ-NP-Za-km-z]{51})\b",
        base58_check,
    ),
)
