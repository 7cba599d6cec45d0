"""All that is tried, and how many of ten million inputs each gets: more where a check is quick."""

from ..target import Target

_ITEMS = ("recollect.items", "recollect.sessions.history", "recollect.sessions.repair")
_VIEWS = ("recollect.items", "recollect.strategies")
_SEARCH = ("recollect.memory.search", "recollect.memory.terms")
_IMPORTS = ("recollect.sessions.moving", "recollect.sessions.history", "recollect.memory.rights")
_SESSIONS = ("recollect.sessions",)
_SERVICE = ("recollect.server",)

TARGETS = {
    target.name: target
    for target in (
        Target("stored-json", "items:check_stored_json", 1_400_000, ("recollect.items",)),
        Target("items", "items:check_items", 900_000, ("recollect.items",)),
        Target("histories", "items:check_histories", 12_000, _ITEMS),
        Target("views", "views:check_views", 30_000, _VIEWS),
        Target("strategies", "views:check_configurations", 250_000, _VIEWS, 128),
        Target("callbacks", "callbacks:check_callbacks", 8_000, ("recollect.sessions.callbacks",)),
        Target("tokens", "encryption:check_tokens", 80_000, ("recollect.sessions.encryption",)),
        Target("headers", "headers:check_headers", 4_000_000, ("recollect.server.cursors",), 256),
        Target("tool-calls", "tools:check_tool_calls", 2_000_000, ("recollect.mcp.arguments",), 128),
        Target("model-answers", "answers:check_answers", 80_000, ("recollect.memory.models",), 1024),
        Target("questions", "texts:check_questions", 25_000, _SEARCH),
        Target("learning", "texts:check_learning", 6_000, ("recollect.memory.offline",)),
        Target(
            "agents", "settings:check_descriptors", 1_160_000, ("recollect.providers.openai.registry",), 256
        ),
        Target("settings", "settings:open_settings", 15_000, ("recollect.server.settings",), 1024),
        Target("history-files", "imports:open_history_files", 8_000, _IMPORTS),
        Target("exports", "imports:open_exports", 3_000, _IMPORTS),
        Target("sdk-files", "imports:open_sdk_files", 4_000, _IMPORTS, 256),
        Target("rows", "files:open_rows", 4_000, _SESSIONS),
        Target("files", "files:open_files", 2_000, _SESSIONS, 256),
        Target("sqlite-questions", "questions:open_questions", 6_000, _SEARCH),
        Target("postgres-questions", "questions:open_questions_on_postgres", 3_000, _SEARCH, 512, True),
        Target("requests", "requests:open_requests", 5_000, _SERVICE, 256),
    )
}
