"""The event log: all events of a conversation in order. It does not change when a session is rewritten."""

from .event import ConversationEvent, event_of
from .log import EventLog
from .projection import project_new_session_items

__all__ = ["ConversationEvent", "EventLog", "event_of", "project_new_session_items"]
