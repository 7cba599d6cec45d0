"""Adds a server to the text of a configuration file, and removes it: in JSON with comments, and in TOML.

Each result is read again before it is returned. A text that would not hold exactly the old contents with the
change is not written.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...errors import RecollectError
from . import jsonc

NAME = "recollect"
"""The name of our server in all files."""

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_OWN_HEADER = re.compile(
    rf"""^[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*(?:{NAME}|"{NAME}"|'{NAME}')[ \t]*[\].].*$""", re.MULTILINE
)


class ConfigurationFileError(RecollectError, ValueError):
    """A file of a coding agent cannot be changed. It was left as it is."""


class Format(Protocol):
    """How a client writes its servers."""

    def add(self, text: str, entry: Mapping[str, Any]) -> str:
        """The text with our entry. Raises a `ConfigurationFileError` if it cannot be added."""
        ...

    def remove(self, text: str) -> str:
        """The text without our entry; unchanged if it has none."""
        ...

    def entry_of(self, text: str) -> Mapping[str, Any]:
        """Our entry in a text that has one."""
        ...


@dataclass(frozen=True)
class JsonFormat:
    """An object of servers under a key of a JSON file, which may have comments."""

    key: str

    def add(self, text: str, entry: Mapping[str, Any]) -> str:
        """The text with our entry, as the last one."""
        if not text.strip():
            return json.dumps({self.key: {NAME: dict(entry)}}, indent=2, ensure_ascii=False) + "\n"
        root = self._parse(text)
        held = root.member(self.key)
        unit = _unit_of(text, root)
        if held is None:
            changed = jsonc.set_member(text, root, self.key, {NAME: dict(entry)}, unit)
        else:
            changed = jsonc.set_member(text, held.value, NAME, dict(entry), unit)
        servers = {**root.value.get(self.key, {}), NAME: dict(entry)}
        self._check(changed, {**root.value, self.key: servers})
        return changed

    def remove(self, text: str) -> str:
        """The text without our entry. An object without servers stays."""
        root = self._parse(text)
        held = root.member(self.key)
        if held is None or held.value.member(NAME) is None:
            return text
        changed = jsonc.remove_member(text, held.value, NAME)
        servers = {name: value for name, value in held.value.value.items() if name != NAME}
        self._check(changed, {**root.value, self.key: servers})
        return changed

    def entry_of(self, text: str) -> Mapping[str, Any]:
        """Our entry in a text that has one."""
        entry: Mapping[str, Any] = self._parse(text).value[self.key][NAME]
        return entry

    def _parse(self, text: str) -> jsonc.Node:
        try:
            root = jsonc.parse(text.removeprefix("\ufeff"))
        except ValueError as error:
            raise ConfigurationFileError(f"is not valid JSON, in {error}") from None
        if text.startswith("\ufeff"):
            raise ConfigurationFileError("begins with a byte order mark: save it without one")
        if not isinstance(root.value, dict):
            raise ConfigurationFileError("must hold a JSON object")
        if not isinstance(root.value.get(self.key, {}), dict):
            raise ConfigurationFileError(f"has something else than an object under {self.key}")
        return root

    def _check(self, text: str, expected: object) -> None:
        if jsonc.parse(text).value != expected:
            raise ConfigurationFileError("has a form that cannot be changed safely: add the entry by hand")


def _unit_of(text: str, root: jsonc.Node) -> str:
    """One step of indentation, as the file has it."""
    if not root.members:
        return "  "
    place = root.members[0].start
    before = text[text.rfind("\n", 0, place) + 1 : place]
    return before if before and not before.strip(" \t") else "  "


@dataclass(frozen=True)
class TomlFormat:
    """A table for each server, as `[mcp_servers.recollect]`."""

    def add(self, text: str, entry: Mapping[str, Any]) -> str:
        """The text with our table at its end. Comments and everything else stay."""
        data = _parse_toml(text)
        servers = data.get("mcp_servers", {})
        if not isinstance(servers, dict):
            raise ConfigurationFileError("has something else than tables under mcp_servers")
        kept = _without_own_table(text) if NAME in servers else text
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not kept else newline if kept.endswith("\n") else newline * 2
        lines = [f"[mcp_servers.{NAME}]", *(f"{name} = {_toml(value)}" for name, value in entry.items())]
        changed = kept + gap + newline.join(lines) + newline
        _check_toml(changed, {**data, "mcp_servers": {**servers, NAME: dict(entry)}})
        return changed

    def remove(self, text: str) -> str:
        """The text without our table."""
        data = _parse_toml(text)
        servers = data.get("mcp_servers", {})
        if not isinstance(servers, dict) or NAME not in servers:
            return text
        changed = _without_own_table(text)
        others = {name: value for name, value in servers.items() if name != NAME}
        expected = {name: value for name, value in data.items() if name != "mcp_servers"}
        _check_toml(changed, {**expected, "mcp_servers": others} if others else expected)
        return changed

    def entry_of(self, text: str) -> Mapping[str, Any]:
        """Our entry in a text that has one."""
        entry: Mapping[str, Any] = _parse_toml(text)["mcp_servers"][NAME]
        return entry


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        _, found, place = str(error).rpartition("(at ")
        where = f", at {place.rstrip(')')}" if found else ""
        raise ConfigurationFileError(f"is not valid TOML{where}") from None


def _check_toml(text: str, expected: object) -> None:
    try:
        is_same = tomllib.loads(text) == expected
    except ValueError:
        is_same = False
    if not is_same:
        raise ConfigurationFileError("has a form that cannot be changed safely: change the entry by hand")


def _without_own_table(text: str) -> str:
    """The text without our table and its tables inside, each up to the next header."""
    while found := _OWN_HEADER.search(text):
        following = _HEADER.search(text, found.end())
        after = text[following.start() :] if following else ""
        before = text[: found.start()]
        text = before + after if after else before.rstrip("\r\n") + ("\n" if before.strip() else "")
    return text


def _toml(value: Any) -> str:
    # Strings and lists of strings are written alike in JSON and TOML.
    return json.dumps(value, ensure_ascii=False)
