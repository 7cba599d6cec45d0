"""The event log: what happened in a conversation, in sequence, whatever becomes of the session."""

from .event import ConversationEvent, event_of
from .log import EventLog
from .projection import project_new_session_items

__all__ = ["ConversationEvent", "EventLog", "event_of", "project_new_session_items"]
