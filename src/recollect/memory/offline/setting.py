"""Tells which messages are part of a play: what is said in them is nobody's fact."""

from dataclasses import dataclass, replace

from ..pipeline.stages import Excerpt
from .rules import patterns_of
from .sentences import is_chinese
from .statements import plain

_HEAD = 2000  # characters of a message


@dataclass
class Setting:
    """Whether what is said is part of a play."""

    is_play: bool = False

    def hear(self, text: str) -> bool:
        """Whether a message is part of a play."""
        setting = patterns_of("zh" if is_chinese(text) else "en").setting
        head = text[:_HEAD].lower()
        if self.is_play and setting["over"].search(head):
            self.is_play = False
            return False
        self.is_play = self.is_play or bool(setting["play"].search(head))
        return self.is_play


def without_play(excerpt: Excerpt) -> Excerpt:
    """The excerpt without the messages of the user that are part of a play."""
    setting = Setting()
    for message in filter(excerpt.is_users, excerpt.before):
        setting.hear(plain(message.content))
    kept = [
        each
        for each in excerpt.messages
        if not (excerpt.is_users(each) and setting.hear(plain(each.content)))
    ]
    return replace(excerpt, messages=tuple(kept))
