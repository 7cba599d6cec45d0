"""The agents of a service: descriptors from a file or from code, and the SDK agents built from them."""

from ...errors import UnknownAgentError as UnknownAgentError
from .descriptor import DEFAULT_AGENT as DEFAULT_AGENT
from .descriptor import AgentConfigError as AgentConfigError
from .descriptor import AgentDescriptor as AgentDescriptor
from .registry import AgentRegistry as AgentRegistry
