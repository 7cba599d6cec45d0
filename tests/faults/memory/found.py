"""What is stored, put together from the rows of all tables."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .model import Said, Talk, User
from .places import Rows

Row = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """The rows of all tables, as questions about them."""

    rows: Rows

    @cached_property
    def messages(self) -> dict[str, dict[int, Said]]:
        """The messages of each conversation, by their places."""
        found: dict[str, dict[int, Said]] = defaultdict(dict)
        for row in self.rows["conversation_messages"]:
            said = Said(row["message_id"], row["role"], row["content"])
            found[row["conversation_id"]][row["message_index"]] = said
        return found

    @cached_property
    def conversations(self) -> dict[str, list[Row]]:
        """The conversations of each user."""
        return _by(self.rows["conversations"], "user_id")

    @cached_property
    def entries(self) -> dict[str, list[Row]]:
        """The entries of each user, in their order."""
        users = {row["memory_id"]: row["user_id"] for row in self.rows["memories"]}
        found: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(self.rows["memory_contents"], key=lambda row: row["position"]):
            found[users.get(row["memory_id"], "nobody")].append(row)
        return found

    @cached_property
    def learned(self) -> dict[tuple[str, str], list[str]]:
        """The entries that were learned from each message."""
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for row in self.rows["memory_evidence"]:
            found[row["conversation_id"], row["message_id"]].append(row["content_id"])
        return found

    @cached_property
    def cited(self) -> set[str]:
        """The entries that have evidence."""
        return {row["content_id"] for row in self.rows["memory_evidence"]}

    @cached_property
    def runs(self) -> dict[str, list[Row]]:
        """The runs over each conversation, in the order of the messages."""
        return _by(sorted(self.rows["memory_runs"], key=lambda row: row["first_index"]), "conversation_id")

    @cached_property
    def stages(self) -> dict[str, list[Row]]:
        """The finished stages of each run."""
        return _by(self.rows["memory_run_stages"], "run_id")

    def user(self, name: str) -> User:
        """What is stored about a user by their own doing, in the words of the model."""
        user = User(name)
        for row in self.conversations.get(name, []):
            talk_id = row["conversation_id"]
            closed = row["closed_at"] is not None
            user.talks[talk_id] = Talk(self.messages.get(talk_id, {}), row["next_index"], closed)
        return user

    def written(self, name: str) -> set[tuple[str, ...]]:
        """The wordings of each entry that was written by hand, from the oldest to the one that is told."""
        by_hand = {
            row["content_id"]: row
            for row in self.entries.get(name, [])
            if row["content_id"] not in self.cited
        }
        later = {row["superseded_by"] for row in by_hand.values()}
        first = [row for content_id, row in by_hand.items() if content_id not in later]
        return {tuple(_wordings(row, by_hand)) for row in first}


def _wordings(row: Row, by_hand: dict[str, Row]) -> list[str]:
    texts = [row["content_text"]]
    while row["superseded_by"] in by_hand:
        row = by_hand[row["superseded_by"]]
        texts.append(row["content_text"])
    return texts


def _by(rows: list[Row], column: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found
