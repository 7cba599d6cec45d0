"""How a service is configured: one TOML file, and variables of the environment, which win over it."""

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
BETWEEN = "__"
FILE_VARIABLE = "RECOLLECT_CONFIG"
ALIASES = {"RECOLLECT_URL": ("database", "url")}
OTHERS = ("RECOLLECT_AGENT", "RECOLLECT_USER", "RECOLLECT_LOCOMO")
"""Variables of commands, which are no settings of the service."""
OTHER_PREFIXES = ("RECOLLECT_TEST_", "RECOLLECT_BENCH_")
_DEEPEST = 2  # tables above a table of settings: `tenants` has the most


class SettingsError(RecollectError, ValueError):
    """The configuration cannot be used: it names the setting, and never shows its value."""


def _none_of_word(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() in ("", "none") else value


def _list_of_text(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


_Optional = BeforeValidator(_none_of_word)
_Name: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
_ModelName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(offline|(openai|anthropic):.+)$")]
_EmbedderName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(local|none|openai:.+)$")]
_Count: TypeAlias = Annotated[int, Field(ge=1)]
_Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]
_Limit: TypeAlias = Annotated[int | None, Field(ge=1), _Optional]
_Text: TypeAlias = Annotated[str | None, _Optional]


class _Section(BaseModel):
    """Settings that cannot be changed, among which there are none that nobody knows."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=False)


class ServerSettings(_Section):
    """Where the service listens, and what it takes."""

    host: _Name = Field(
        default="127.0.0.1", description="Address to listen on. Other than loopback, it needs keys."
    )
    port: int = Field(default=8765, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    grace_seconds: float = Field(
        default=20, ge=0, le=3600, description="Seconds that running requests and chat turns get at shutdown."
    )
    receive_seconds: float = Field(
        default=30,
        gt=0,
        description="Seconds for a request to arrive: a late body gets 408, a late head a closed connection.",
    )
    receive_bytes_per_second: float = Field(
        default=500,
        ge=0,
        allow_inf_nan=False,
        description="Least average pace of a body after its first 10 seconds, else 408; 0 is any pace.",
    )
    max_concurrency: _Count = Field(
        default=1000,
        description="Requests served at once, and bodies arriving at once; more are answered 503.",
    )
    key_share: _Share = Field(
        default=0.5, description="Share of `max_concurrency` that one key may use; more is answered 429."
    )
    tenant_share: _Share = Field(
        default=0.8, description="Share of `max_concurrency` that the keys of one tenant may use together."
    )
    max_body_bytes: _Count = Field(
        default=4 * 1024 * 1024, description="Largest body of a request, in bytes."
    )
    max_messages: int = Field(
        default=1000, ge=1, le=10_000, description="Most messages in one request; 10000 at most."
    )
    max_page_size: _Count = Field(default=200, description="Most rows on a page.")
    cors_origins: Annotated[tuple[_Name, ...], BeforeValidator(_list_of_text)] = Field(
        default=(),
        description="Origins whose pages may call the service: a list, or with commas between.",
    )


class DatabaseSettings(_Section):
    """Where everything is stored."""

    url: _Name = Field(
        default="recollect.db",
        repr=False,  # it may hold a password
        description="A path, or postgresql://user:password@host/name. RECOLLECT_URL sets it too.",
    )
    create_tables: bool = Field(
        default=False,
        description="Make missing tables on PostgreSQL, for development; else migrate.",
    )
    pool_size: _Count = Field(default=10, description="Connections to PostgreSQL that an instance holds.")

    def options(self) -> dict[str, Any]:
        """How parts open the database: all alike, for with other options they would not share connections."""
        pool = {"pool_size": self.pool_size, "max_overflow": 0}
        return {"create_tables": self.create_tables, "engine_kwargs": pool}


class MemorySettings(_Section):
    """How the service learns and finds."""

    extractor: _ModelName = Field(
        default="offline", description="Who learns: offline (by rule), openai:NAME or anthropic:NAME."
    )
    embedder: _EmbedderName = Field(
        default="local", description="Who makes vectors for search by meaning: local, none or openai:NAME."
    )
    workers: int = Field(
        default=4,
        ge=0,
        description="Users that are learned about at a time; 0 leaves it to `recollect worker`.",
    )
    own_process: bool = Field(
        default=True,
        description="Learn in a process of its own, so that requests do not wait for the processor.",
    )
    quiet_seconds: float = Field(
        default=300, ge=0, description="Seconds of quiet after which a chat is learned from."
    )


class ChatSettings(_Section):
    """Who answers in a chat."""

    agents_file: Annotated[Path | None, _Optional] = Field(
        default=None, description="TOML file that describes the agents; else there is one, the default agent."
    )
    default_agent: _Name = Field(default="assistant", description="The agent of a request that names none.")
    model: _Text = Field(
        default=None, description="Model of agents that name none; without one, the offline agent."
    )
    base_url: _Text = Field(default=None, description="An OpenAI-compatible endpoint; else OpenAI's own.")
    api_key: Annotated[SecretStr | None, _Optional] = Field(
        default=None,
        description="Key of that endpoint; else OPENAI_API_KEY. Keep it out of files.",
    )
    api: Literal["auto", "responses", "chat_completions"] = Field(
        default="auto",
        description="How it is asked: auto is responses at OpenAI, and chat_completions elsewhere.",
    )
    lock_seconds: float = Field(
        default=30,
        ge=0,
        description="Seconds that a turn waits for the one before it on the same conversation.",
    )
    timeout_seconds: float = Field(default=120, gt=0, description="Seconds that a turn may take.")
    provider_conversations: bool = Field(
        default=False, description="Keep chats in the provider's own store (conv_*) as well."
    )


class Limits(_Section):
    """What a tenant may use, and how long its conversations are kept; `none` is without limit."""

    requests_per_minute: _Limit = Field(default=None, description="Requests a minute.")
    tokens_per_day: _Limit = Field(
        default=None, description="Model tokens a day (UTC), for chat and for learning."
    )
    tokens_per_turn: _Count = Field(
        default=2000,
        description="Tokens reserved for a chat turn in flight, until recent turns give a better estimate.",
    )
    retention_days: _Limit = Field(
        default=None,
        description="Days after its last message when a conversation is erased, with what it taught.",
    )
    audit_days: _Limit = Field(
        default=None, description="Days after which entries of the audit log are deleted."
    )


class LoggingSettings(_Section):
    """What is logged, and how; contents never are."""

    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Least level.")
    format: Literal["json", "text"] = Field(default="json", description="json, an object a line, or text.")


class TelemetrySettings(_Section):
    """What others can measure."""

    metrics: bool = Field(default=True, description="Serve /metrics for Prometheus.")
    traces: bool = Field(default=False, description="Make OpenTelemetry spans; needs the extra otel.")
    endpoint: _Text = Field(
        default=None, description="OTLP/HTTP receiver of traces; else as OTEL_EXPORTER_OTLP_* say."
    )
    service_name: _Name = Field(default="recollect", description="Name of the service in traces.")


class Settings(_Section):
    """Everything that can be configured."""

    server: ServerSettings = ServerSettings()
    database: DatabaseSettings = DatabaseSettings()
    memory: MemorySettings = MemorySettings()
    chat: ChatSettings = ChatSettings()
    limits: Limits = Limits()
    tenants: dict[_Name, Limits] = Field(default_factory=dict)
    logging: LoggingSettings = LoggingSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    def limits_for(self, tenant: str) -> Limits:
        """The limits of a tenant: its own, and for what it has none of its own, those of all."""
        own = self.tenants.get(tenant)
        if own is None:
            return self.limits
        return self.limits.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


def load_settings(path: Path | None, environment: Mapping[str, str]) -> Settings:
    """The settings of a file, if there is one, with the environment's in their place where it has any.

    Without a `path`, the file is the one that `RECOLLECT_CONFIG` names.
    """
    named = environment.get(FILE_VARIABLE)
    path = path or (Path(named) if named else None)
    found = _read(path) if path is not None else {}
    names = {place: ".".join(place) for place in _places(found)}
    for variable, place in _variables(environment).items():
        _put(found, place, environment[variable], variable)
        names[place] = variable
    return _checked(found, names)


def setting_names() -> dict[str, Any]:
    """Every setting by its name, such as `server.port`, with what pydantic knows of it."""
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
    except (ValueError, RecursionError) as error:  # also a number of 5,000 digits, and lists in lists
        # The parser's own words may quote a value; the place is enough.
        raise SettingsError(f"the configuration {path} is not TOML{_place_of(error)}") from None


def _place_of(error: Exception) -> str:
    _, found, place = str(error).rpartition("(at ")
    return f", at {place.rstrip(')')}" if found else ""


def _places(found: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterable[tuple[str, ...]]:
    for name, value in found.items():
        yield (*before, name)
        if isinstance(value, dict) and len(before) < _DEEPEST:
            yield from _places(value, (*before, name))


def _variables(environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The variables that are settings, each with its place; the aliases first, so that full names win."""
    aliases = {name: place for name, place in ALIASES.items() if environment.get(name)}
    ours = sorted(name for name in environment if name.startswith(PREFIX))
    for name in ours:
        if BETWEEN not in name and not _is_of_others(name):
            raise SettingsError(f"there is no setting {name}{_likely(name)}")
    full = {name: _place(name.removeprefix(PREFIX).split(BETWEEN)) for name in ours if BETWEEN in name}
    return aliases | full


def _is_of_others(name: str) -> bool:
    return name in (*ALIASES, FILE_VARIABLE, *OTHERS) or name.startswith(OTHER_PREFIXES)


def _likely(variable: str) -> str:
    """What somebody may have meant who wrote a variable without its section, or with one `_` after it."""
    said = variable.removeprefix(PREFIX).lower()
    names = [name for name in setting_names() if not name.startswith("tenants.")]
    meant = next((name for name in names if said in (name.replace(".", "_"), name.partition(".")[2])), None)
    if meant is None:
        by_variable = {name.replace(".", "_"): name for name in names}
        close = get_close_matches(said, by_variable, n=1)
        meant = by_variable[close[0]] if close else None
    return "" if meant is None else f"; {meant} is {PREFIX}{meant.upper().replace('.', BETWEEN)}"


def _place(parts: list[str]) -> tuple[str, ...]:
    """Names are in lower case, but for a tenant's, which is as it is."""
    if parts[0].lower() == "tenants" and len(parts) > 2:
        return ("tenants", BETWEEN.join(parts[1:-1]), parts[-1].lower())
    return tuple(part.lower() for part in parts)


def _put(found: dict[str, Any], place: tuple[str, ...], value: str, variable: str) -> None:
    if not _is_known(place):
        raise SettingsError(_unknown(variable, place))
    inside = found
    for name in place[:-1]:
        inside = inside.setdefault(name, {})
        if not isinstance(inside, dict):
            raise SettingsError(f"the setting {name} is wrong: it is a table of settings")
    inside[place[-1]] = value


def _is_known(place: tuple[str, ...]) -> bool:
    named = ("tenants", "NAME", *place[2:]) if place[0] == "tenants" and len(place) > 2 else place
    return ".".join(named) in setting_names()


def _checked(found: dict[str, Any], names: Mapping[tuple[str, ...], str]) -> Settings:
    try:
        return Settings.model_validate(found)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise SettingsError("; ".join(_told(fault, names) for fault in faults)) from None


def _told(fault: ErrorDetails, names: Mapping[tuple[str, ...], str]) -> str:
    place = tuple(str(part) for part in fault["loc"])
    name = names.get(place) or names.get(place[:-1]) or ".".join(place)
    if fault["type"] == "extra_forbidden":
        return _unknown(name, place)
    return f"the setting {name} is wrong: {fault['msg']}"


def _unknown(name: str, place: tuple[str, ...]) -> str:
    model: Any = Settings
    if len(place) > 1:
        field = Settings.model_fields.get(place[0])
        model = Limits if place[0] == "tenants" else field and field.annotation
    there = ", ".join(getattr(model, "model_fields", Settings.model_fields))
    where = f"[{place[0]}]" if model is not Settings and model is not None else "the configuration"
    return f"there is no setting {name}; {where} has {there}"
