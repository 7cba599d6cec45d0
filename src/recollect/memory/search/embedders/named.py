"""Embedders by their names, as a configuration gives them."""

from .local import local_embedder
from .protocol import Embedder


def embedder_named(name: str) -> Embedder | None:
    """The embedder of `local` or `openai:MODEL`; `None` for `none`."""
    kind, _, model = name.partition(":")
    if name == "local":
        return local_embedder()
    if name == "none":
        return None
    if kind != "openai" or not model:
        raise ValueError("an embedder must be local, none or openai:NAME")
    from .openai import OpenAIEmbedder

    return OpenAIEmbedder(model)
