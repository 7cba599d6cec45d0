"""What learns and what embeds in a campaign: by rule and on this machine, or a provider over HTTP."""

from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.search.embedders import CallableEmbedder, OpenAIEmbedder
from recollect.testing.providers import vector_of

_ANSWER_WITHIN = 2.0  # seconds: a provider that hangs is a fault among others
_DIMENSIONS = 64


def extractor_of(provider: str, api_key: str) -> OpenAIExtractor | None:
    """A model that learns; `None` for learning by rule, where there is no provider."""
    if not provider:
        return None
    return OpenAIExtractor("learner", base_url=provider, api_key=api_key, timeout=_ANSWER_WITHIN)


def embedder_of(provider: str, api_key: str) -> OpenAIEmbedder | CallableEmbedder:
    """A model that embeds, or a function that does so for next to nothing."""
    if not provider:
        return CallableEmbedder(_vectors, name="function", dimensions=_DIMENSIONS)
    return OpenAIEmbedder(
        dimensions=_DIMENSIONS, base_url=provider, api_key=api_key, timeout=_ANSWER_WITHIN, max_retries=0
    )


async def _vectors(texts: list[str]) -> list[list[float]]:
    return [vector_of(text, _DIMENSIONS) for text in texts]


async def close(*parts: object) -> None:
    """Let go of connections to a provider."""
    for part in parts:
        if isinstance(part, OpenAIExtractor | OpenAIEmbedder):
            await part.aclose()
