"""Views of PostgreSQL for people who write SQL: each memory and each conversation as one row of documents.

Nothing of Recollect reads them. They join a lateral query, so PostgreSQL refuses to write through them.
"""

from ...sql.description import View
from .schema import CONTENTS, CONVERSATIONS, MEMORIES, MESSAGES

_CURRENT = "entry.retired_at IS NULL AND (entry.expires_at IS NULL OR entry.expires_at > now())"
_ISO = """'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'"""


def _texts_of(kind: str) -> str:
    """The texts of the current entries of a type, as a JSON array; empty if there are none."""
    listed = (
        f"jsonb_agg(entry.content_text ORDER BY entry.position) FILTER (WHERE entry.content_type = '{kind}')"
    )
    return f"coalesce({listed}, '[]'::jsonb) AS {kind}_content"


_KINDS = ", ".join(map(_texts_of, ("profile", "event", "mind", "instruction")))
_MESSAGE = (
    "jsonb_build_object('message_id', said.message_id, 'role', said.role, 'content', said.content,"
    " 'message_index', said.message_index,"
    f" 'created_at', to_char(said.created_at AT TIME ZONE 'UTC', {_ISO}))"
)
# Vectors of two models cannot be added up. Those of the model with the most messages count.
_MEAN = (
    f"(SELECT avg(said.content_vector) FROM {MESSAGES.name} AS said"
    " WHERE said.conversation_id = kept.conversation_id AND said.vector_dimension > 0"
    " GROUP BY said.vector_model, said.vector_dimension"
    " ORDER BY count(*) DESC, said.vector_model LIMIT 1)"
)

MEMORY_DOCUMENTS = View(
    "memory_documents",
    "SELECT kept.memory_id, kept.tenant, kept.agent_id, kept.user_id, kept.created_at, kept.updated_at,"
    " kept.version, known.profile_content, known.event_content, known.mind_content, known.instruction_content"
    f" FROM {MEMORIES.name} AS kept CROSS JOIN LATERAL (SELECT {_KINDS} FROM {CONTENTS.name} AS entry"
    f" WHERE entry.memory_id = kept.memory_id AND {_CURRENT}) AS known",
)
CONVERSATION_DOCUMENTS = View(
    "conversation_documents",
    "SELECT kept.conversation_id, kept.tenant, kept.agent_id, kept.user_id, kept.session_id,"
    " kept.memory_id, kept.created_at, kept.updated_at, kept.pipeline_result, said.turn_count,"
    " jsonb_build_object('messages', said.messages) AS conversation_data,"
    f" {_MEAN} AS conversation_vector"
    f" FROM {CONVERSATIONS.name} AS kept CROSS JOIN LATERAL (SELECT count(*) AS turn_count,"
    f" coalesce(jsonb_agg({_MESSAGE} ORDER BY said.message_index), '[]'::jsonb) AS messages"
    f" FROM {MESSAGES.name} AS said WHERE said.conversation_id = kept.conversation_id) AS said",
)
VIEWS = (MEMORY_DOCUMENTS, CONVERSATION_DOCUMENTS)
