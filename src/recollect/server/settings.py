"""The configuration of a service: one TOML file, and environment variables, which override it."""

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails

from ..errors import RecollectError

PREFIX = "RECOLLECT_"
SEPARATOR = "__"
FILE_VARIABLE = "RECOLLECT_CONFIG"
ALIASES = {"RECOLLECT_URL": ("database", "url")}
OTHERS = ("RECOLLECT_AGENT", "RECOLLECT_CAPTURE_HOME", "RECOLLECT_KEY", "RECOLLECT_LOCOMO", "RECOLLECT_USER")
"""Variables of commands, not settings of the service."""
OTHER_PREFIXES = ("RECOLLECT_TEST_", "RECOLLECT_BENCH_")
_MAX_DEPTH = 2  # nesting of tables; `tenants` has the most


class SettingsError(RecollectError, ValueError):
    """The configuration is invalid. The message names the setting, never its value."""


def _parse_none(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() in ("", "none") else value


def _parse_list(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _parse_pairs(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    pairs = (part.partition("=") for part in _parse_list(value))
    return {name.strip(): meaning.strip() for name, _, meaning in pairs}


_Optional = BeforeValidator(_parse_none)
_Name: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
_ModelName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(offline|(openai|anthropic):.+)$")]
_EmbedderName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(local|none|openai:.+)$")]
_Count: TypeAlias = Annotated[int, Field(ge=1)]
_Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]
_Names: TypeAlias = Annotated[tuple[_Name, ...], BeforeValidator(_parse_list)]
_Limit: TypeAlias = Annotated[int | None, Field(ge=1), _Optional]
_Text: TypeAlias = Annotated[str | None, _Optional]
_HttpUrl: TypeAlias = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+[^\s?#]*$")]


class _Section(BaseModel):
    """A section of frozen settings that refuses unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=False)


class ServerSettings(_Section):
    """The address of the service, and limits of requests."""

    host: _Name = Field(
        default="127.0.0.1",
        description="Address to listen on. Any address other than loopback requires keys.",
    )
    port: int = Field(default=8765, ge=0, le=65535, description="Port to listen on; 0 takes a free port.")
    workers: int = Field(
        default=0,
        ge=0,
        le=64,
        description="Server processes on the port, with a supervisor; 0 is one process without a supervisor.",
    )
    grace_seconds: float = Field(
        default=20,
        ge=0,
        le=3600,
        description="Seconds that running requests and chat turns have at shutdown.",
    )
    receive_seconds: float = Field(
        default=30,
        gt=0,
        description="Seconds for a request to arrive. A late body gets 408, a late head a closed connection.",
    )
    receive_bytes_per_second: float = Field(
        default=500,
        ge=0,
        allow_inf_nan=False,
        description="Minimum average pace of a body after 10 seconds, else 408; 0 disables it.",
    )
    max_concurrency: _Count = Field(
        default=1000,
        description="Most concurrent requests of a server process, with those that wait, and most arriving"
        " bodies; more get 503.",
    )
    max_wait_seconds: float = Field(
        default=2.0,
        gt=0,
        le=60,
        description="Most seconds that a request waits for its turn; then it gets 503.",
    )
    key_share: _Share = Field(
        default=0.5, description="Share of `max_concurrency` that one key may use; more gets 429."
    )
    tenant_share: _Share = Field(
        default=0.8,
        description="Share of `max_concurrency` that all keys of one tenant may use; more gets 429.",
    )
    max_body_bytes: _Count = Field(default=4 * 1024 * 1024, description="Largest request body, in bytes.")
    max_messages: int = Field(
        default=1000, ge=1, le=10_000, description="Most messages in one request; at most 10000."
    )
    max_page_size: _Count = Field(default=200, description="Most rows on a page.")
    cors_origins: _Names = Field(
        default=(),
        description="Origins whose pages may call the service; in a variable, separated by commas.",
    )


class DatabaseSettings(_Section):
    """The database."""

    url: _Name = Field(
        default="recollect.db",
        repr=False,  # it may hold a password
        description="A path, or postgresql://user:password@host/name. RECOLLECT_URL sets it, too.",
    )
    create_tables: bool = Field(
        default=False,
        description="Create missing tables on PostgreSQL, for development; else run `recollect migrate`.",
    )
    pool_size: _Count = Field(
        default=10,
        description="Most connections to PostgreSQL of each process: server processes, and the learner.",
    )

    def options(self) -> dict[str, Any]:
        """The options with which all parts open the database. Parts with equal options share connections."""
        pool = {"pool_size": self.pool_size, "max_overflow": 0}
        return {"create_tables": self.create_tables, "engine_kwargs": pool}


class AccessSettings(_Section):
    """Access to the service."""

    require_keys: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="Whether requests need an API key: auto (since the first key was created, also if the"
        " database is replaced), always or never. never is allowed on loopback only.",
    )


class MemorySettings(_Section):
    """Learning and search."""

    extractor: _ModelName = Field(
        default="offline",
        description="What extracts entries: offline (by rule), openai:NAME or anthropic:NAME.",
    )
    trust: Literal["high", "low"] = Field(
        default="high",
        description="Trust in the model: high for large ones, low to check the answers of small ones.",
    )
    instructions: _Text = Field(
        default=None, description="Further instructions to the model, such as what your application is for."
    )
    include: _Names = Field(
        default=(), description="What else the model notes; in a variable, separated by commas."
    )
    exclude: _Names = Field(
        default=(), description="What the model never notes; in a variable, separated by commas."
    )
    kinds: Annotated[dict[_Name, _Name], BeforeValidator(_parse_pairs)] = Field(
        default={},
        description="Kinds of entries of your own, with their descriptions; in a variable NAME=DESCRIPTION,"
        " separated by commas.",
    )
    infers_after: Annotated[int | None, Field(ge=0), _Optional] = Field(
        default=None,
        description="After how many new entries the model infers what the user wants, worries about and"
        " values; 0 is never. Without it, 8, or with low trust never.",
    )
    embedder: _EmbedderName = Field(
        default="local", description="What makes vectors for search by meaning: local, none or openai:NAME."
    )
    workers: int = Field(
        default=4,
        ge=0,
        description="Number of workers; 0 leaves learning to `recollect worker`.",
    )
    own_process: bool = Field(
        default=True,
        description="Run the workers in a separate process, so that they take no CPU time from requests.",
    )
    idle_seconds: float = Field(
        default=300,
        ge=0,
        description="Seconds without work after which that process ends, until there is work; 0 keeps it.",
    )
    mask_secrets_in_messages: bool = Field(
        default=False, description="Mask secrets in recorded messages, too; in entries they always are."
    )
    quiet_seconds: float = Field(
        default=300, ge=0, description="Seconds without a message after which learning from a chat starts."
    )

    def extraction(self) -> dict[str, Any]:
        """The options of an extractor that asks a model."""
        names = {"trust", "instructions", "include", "exclude", "kinds", "infers_after"}
        return self.model_dump(include=names, exclude_none=True)


class ChatSettings(_Section):
    """Agents and models of chats."""

    agents_file: Annotated[Path | None, _Optional] = Field(
        default=None, description="TOML file with the agents; without it, there is only the default agent."
    )
    default_agent: _Name = Field(default="assistant", description="Agent of a request that names none.")
    model: _Text = Field(
        default=None, description="Model of agents that name none; without it, the offline agent answers."
    )
    base_url: _Text = Field(
        default=None, description="URL of an OpenAI-compatible endpoint; without it, OpenAI's own."
    )
    api_key: Annotated[SecretStr | None, _Optional] = Field(
        default=None,
        description="Key of that endpoint; without it, OPENAI_API_KEY. Keep it out of files.",
    )
    api: Literal["auto", "responses", "chat_completions"] = Field(
        default="auto",
        description="API of the endpoint: auto is responses at OpenAI, and chat_completions elsewhere.",
    )
    lock_seconds: float = Field(
        default=30,
        ge=0,
        description="Seconds that a turn waits for the previous turn of the same conversation.",
    )
    timeout_seconds: float = Field(default=120, gt=0, description="Most seconds of a turn.")
    provider_conversations: bool = Field(
        default=False, description="Also store chats at the provider (conv_*)."
    )


class ProxySettings(_Section):
    """Calls to model providers that pass through the service and get memories."""

    enabled: bool = Field(default=False, description="Serve /proxy/openai and /proxy/anthropic.")
    openai_url: _HttpUrl = Field(
        default="https://api.openai.com/v1",
        description="URL of OpenAI, or of a server with its API; calls go to /chat/completions under it.",
    )
    openai_key: Annotated[SecretStr | None, _Optional] = Field(
        default=None,
        description="Key for that URL, used for all callers; without it, each call has its own key.",
    )
    anthropic_url: _HttpUrl = Field(
        default="https://api.anthropic.com",
        description="URL of Anthropic, or of a server with its API; calls go to /v1/messages under it.",
    )
    anthropic_key: Annotated[SecretStr | None, _Optional] = Field(
        default=None,
        description="Key for that URL, used for all callers; without it, each call has its own key.",
    )
    default_agent: _Name = Field(default="assistant", description="Agent of a call that names none.")
    recall_milliseconds: float = Field(
        default=50,
        gt=0,
        le=60_000,
        description="Most milliseconds that a call waits for memories; then it goes on without them.",
    )
    page_tokens: int = Field(
        default=600, ge=0, le=100_000, description="Most tokens of the page about the user; 0 for no page."
    )
    page_refresh: Literal["turn", "conversation"] = Field(
        default="conversation",
        description="When the page is written anew: in each turn, or when a conversation starts or was idle.",
    )
    memory_tokens: _Count = Field(
        default=1000, description="Most tokens of memories about the newest message of a call."
    )
    memory_place: Literal["late", "system"] = Field(
        default="late",
        description="late puts memories after the newest message, so that all before stays cached; system"
        " into the system text.",
    )
    timeout_seconds: float = Field(
        default=600, gt=0, description="Most seconds without a byte from the provider."
    )
    max_body_bytes: _Count = Field(default=32 * 1024 * 1024, description="Largest body of a call, in bytes.")


class Limits(_Section):
    """Limits and retention of a tenant; `none` means no limit."""

    requests_per_minute: _Limit = Field(default=None, description="Requests per minute.")
    tokens_per_day: _Limit = Field(
        default=None, description="Model tokens per UTC day, for chat, learning and the proxy."
    )
    tokens_per_turn: _Count = Field(
        default=2000,
        description="Tokens reserved for a chat turn in flight, until recent turns give a better estimate.",
    )
    retention_days: _Limit = Field(
        default=None,
        description="Days after its last message until a conversation is erased, with its entries.",
    )
    audit_days: _Limit = Field(default=None, description="Days until audit log entries are deleted.")
    purge_expired_after_days: _Limit = Field(
        default=None, description="Days after its expiry until an expired entry is deleted."
    )


class LoggingSettings(_Section):
    """Logs. They never contain contents."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level to log."
    )
    format: Literal["auto", "json", "text"] = Field(
        default="auto",
        description="text, json (one object per line), or auto: text on a terminal and json elsewhere.",
    )


class TelemetrySettings(_Section):
    """Metrics and traces."""

    metrics: bool = Field(default=True, description="Serve /metrics for Prometheus.")
    traces: bool = Field(default=False, description="Record OpenTelemetry spans; needs the extra otel.")
    endpoint: _Text = Field(
        default=None, description="OTLP/HTTP receiver of traces; without it, OTEL_EXPORTER_OTLP_* apply."
    )
    service_name: _Name = Field(default="recollect", description="Name of the service in traces.")


class Settings(_Section):
    """All settings of a service."""

    server: ServerSettings = ServerSettings()
    database: DatabaseSettings = DatabaseSettings()
    access: AccessSettings = AccessSettings()
    memory: MemorySettings = MemorySettings()
    chat: ChatSettings = ChatSettings()
    proxy: ProxySettings = ProxySettings()
    limits: Limits = Limits()
    tenants: dict[_Name, Limits] = Field(default_factory=dict)
    logging: LoggingSettings = LoggingSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    def limits_for(self, tenant: str) -> Limits:
        """The limits of a tenant: its own settings, and the general limits for the rest."""
        own = self.tenants.get(tenant)
        if own is None:
            return self.limits
        return self.limits.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


def load_settings(path: Path | None, environment: Mapping[str, str]) -> Settings:
    """Load the settings from a file, if there is one, and the environment, which overrides it.

    Without a `path`, `RECOLLECT_CONFIG` names the file. Invalid settings raise a `SettingsError`.
    """
    named = environment.get(FILE_VARIABLE)
    path = path or (Path(named) if named else None)
    found = _read(path) if path is not None else {}
    names = {place: ".".join(place) for place in _places(found)}
    for variable, place in _variables(environment).items():
        _put(found, place, environment[variable], variable)
        names[place] = variable
    return _validate(found, names)


def setting_names() -> dict[str, Any]:
    """The pydantic fields of all settings by name, such as `server.port`."""
    known: dict[str, Any] = {}
    for section, field in Settings.model_fields.items():
        model = Limits if section == "tenants" else field.annotation
        prefix = "tenants.NAME" if section == "tenants" else section
        fields = getattr(model, "model_fields", {})
        known |= {f"{prefix}.{name}": info for name, info in fields.items()}
    return known


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"the configuration {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"the configuration {path} is not UTF-8") from error
    except (ValueError, RecursionError) as error:  # also an integer of 5,000 digits, or deep nesting
        # The parser's message may quote a value, so only its position is shown.
        raise SettingsError(f"the configuration {path} is not TOML{_place_of(error)}") from None


def _place_of(error: Exception) -> str:
    _, found, place = str(error).rpartition("(at ")
    return f", at {place.rstrip(')')}" if found else ""


def _places(found: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterable[tuple[str, ...]]:
    for name, value in found.items():
        yield (*before, name)
        if isinstance(value, dict) and len(before) < _MAX_DEPTH:
            yield from _places(value, (*before, name))


def _variables(environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The variables that are settings, with their places. Aliases come first, so that full names override."""
    aliases = {name: place for name, place in ALIASES.items() if environment.get(name)}
    ours = sorted(name for name in environment if name.startswith(PREFIX))
    for name in ours:
        if SEPARATOR not in name and not _is_other_variable(name):
            raise SettingsError(f"unknown setting {name}{_suggestion(name)}")
    full = {name: _place(name.removeprefix(PREFIX).split(SEPARATOR)) for name in ours if SEPARATOR in name}
    return aliases | full


def _is_other_variable(name: str) -> bool:
    return name in (*ALIASES, FILE_VARIABLE, *OTHERS) or name.startswith(OTHER_PREFIXES)


def _suggestion(variable: str) -> str:
    """The probable setting of a variable that lacks its section, or has one `_` after it."""
    given = variable.removeprefix(PREFIX).lower()
    names = [name for name in setting_names() if not name.startswith("tenants.")]
    meant = next((name for name in names if given in (name.replace(".", "_"), name.partition(".")[2])), None)
    if meant is None:
        by_variable = {name.replace(".", "_"): name for name in names}
        close = get_close_matches(given, by_variable, n=1)
        meant = by_variable[close[0]] if close else None
    return "" if meant is None else f"; {meant} is {PREFIX}{meant.upper().replace('.', SEPARATOR)}"


def _place(parts: list[str]) -> tuple[str, ...]:
    """The place of a variable. Names are in lower case, except that of a tenant."""
    if parts[0].lower() == "tenants" and len(parts) > 2:
        return ("tenants", SEPARATOR.join(parts[1:-1]), parts[-1].lower())
    return tuple(part.lower() for part in parts)


def _put(found: dict[str, Any], place: tuple[str, ...], value: str, variable: str) -> None:
    if not _is_known(place):
        raise SettingsError(_unknown(variable, place))
    inside = found
    for name in place[:-1]:
        inside = inside.setdefault(name, {})
        if not isinstance(inside, dict):
            raise SettingsError(f"invalid setting {name}: must be a table of settings")
    inside[place[-1]] = value


def _is_known(place: tuple[str, ...]) -> bool:
    named = ("tenants", "NAME", *place[2:]) if place[0] == "tenants" and len(place) > 2 else place
    return ".".join(named) in setting_names()


def _validate(found: dict[str, Any], names: Mapping[tuple[str, ...], str]) -> Settings:
    try:
        return Settings.model_validate(found)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        raise SettingsError("; ".join(_describe(each, names) for each in errors)) from None


def _describe(error: ErrorDetails, names: Mapping[tuple[str, ...], str]) -> str:
    place = tuple(str(part) for part in error["loc"])
    name = names.get(place) or names.get(place[:-1]) or ".".join(place)
    if error["type"] == "extra_forbidden":
        return _unknown(name, place)
    return f"invalid setting {name}: {error['msg']}"


def _unknown(name: str, place: tuple[str, ...]) -> str:
    model: Any = Settings
    if len(place) > 1:
        field = Settings.model_fields.get(place[0])
        model = Limits if place[0] == "tenants" else field and field.annotation
    there = ", ".join(getattr(model, "model_fields", Settings.model_fields))
    where = f"[{place[0]}]" if model is not Settings and model is not None else "the configuration"
    return f"unknown setting {name}; {where} has {there}"
