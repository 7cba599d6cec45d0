"""All that is tried, and how many of ten million inputs each gets: more where a check is quick."""

from ..target import Target

_ITEMS = ("recollect.items", "recollect.sessions.history")
_VIEWS = ("recollect.items", "recollect.strategies")
_SEARCH = ("recollect.memory.search", "recollect.memory.texts.terms")
_IMPORTS = ("recollect.sessions.sdk_import", "recollect.sessions.history", "recollect.memory.rights")
_SESSIONS = ("recollect.sessions",)
_SERVICE = ("recollect.server",)

TARGETS = {
    target.name: target
    for target in (
        Target("stored-json", "items:check_stored_json", 1_300_000, ("recollect.items",)),
        Target("items", "items:check_items", 1_000_000, ("recollect.items",)),
        Target("histories", "items:check_histories", 40_000, _ITEMS),
        Target("views", "views:check_views", 120_000, _VIEWS),
        Target("strategies", "views:check_configurations", 300_000, _VIEWS, 128),
        Target("callbacks", "callbacks:check_callbacks", 20_000, ("recollect.sessions.callbacks",)),
        Target("tokens", "encryption:check_tokens", 150_000, ("recollect.sessions.encryption",)),
        Target("headers", "headers:check_headers", 3_311_000, ("recollect.server.cursors",), 256),
        Target("tool-calls", "tools:check_tool_calls", 2_000_000, ("recollect.mcp.arguments",), 128),
        Target("model-answers", "answers:check_answers", 150_000, ("recollect.memory.extraction",), 1024),
        Target("questions", "texts:check_questions", 60_000, _SEARCH),
        Target("learning", "texts:check_learning", 20_000, ("recollect.memory.offline",)),
        Target(
            "agents", "settings:check_descriptors", 1_400_000, ("recollect.providers.openai.registry",), 256
        ),
        Target("settings", "settings:open_settings", 40_000, ("recollect.server.settings",), 1024),
        Target("history-files", "imports:open_history_files", 20_000, _IMPORTS),
        Target("exports", "imports:open_exports", 8_000, _IMPORTS),
        Target("sdk-files", "imports:open_sdk_files", 10_000, _IMPORTS, 256),
        Target("rows", "files:open_rows", 10_000, _SESSIONS),
        Target("files", "files:open_files", 5_000, _SESSIONS, 256),
        Target("sqlite-questions", "questions:open_questions", 15_000, _SEARCH),
        Target("postgres-questions", "questions:open_questions_on_postgres", 6_000, _SEARCH, 512, True),
        Target("requests", "requests:open_requests", 15_000, _SERVICE, 256),
    )
}
