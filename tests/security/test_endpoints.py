"""Where the service connects to is configuration: no request can send it anywhere."""

import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from pydantic import BaseModel

from recollect.server import routes, schemas
from recollect.server.schemas.base import QueryParameters, RequestBody

PLACES = re.compile("url|uri|endpoint|host|callback|webhook|proxy|(?<!pro)file|path", re.IGNORECASE)


def requests_below(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from requests_below(model)


def test_no_request_names_a_place_to_connect_to_or_a_file() -> None:
    for package in (schemas, routes):
        for module in iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
    names = {
        name
        for base in (RequestBody, QueryParameters)
        for model in requests_below(base)
        for name in model.model_fields
    }
    assert {"agent_id", "messages", "memory_strategy", "query", "cursor", "mode"} <= names
    assert {name for name in names if PLACES.search(name)} == set()
