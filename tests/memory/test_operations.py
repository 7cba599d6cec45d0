"""An operation is described once: every face has the arguments of its description."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from recollect import MemoryStore
from recollect.cli import _parser
from recollect.cli.arguments import walk
from recollect.mcp.tools import TOOLS
from recollect.memory.manager import ConversationManager
from recollect.memory.operations.description import Kind, Operation, Route, arguments_of
from recollect.memory.operations.lists import ListEntries, ListEntriesOf, ListMemories, ListRuns, ListUsers
from recollect.memory.operations.search import Recall, SearchConversations, SearchMemories
from recollect.server.app import create_app
from recollect.server.settings import Settings

OPERATIONS = Operation.__subclasses__()
ROUTED = [(each, each.route) for each in OPERATIONS if each.route is not None and each.route.name]


def names(operation: type[Operation[Any]]) -> list[str]:
    return [each.name for each in arguments_of(operation) if each.local_only is None]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_store_and_the_manager_take_the_arguments_of_an_operation(operation: type) -> None:
    for face in (MemoryStore, ConversationManager):
        methods = dict(inspect.getmembers(face, inspect.isfunction))
        method = next(
            each for name, each in methods.items() if name.title().replace("_", "") == operation.__name__
        )
        assert method.__doc__ == operation.__doc__
        given = list(inspect.signature(method).parameters.values())[1:]
        described = list(inspect.signature(operation).parameters.values())
        assert [(each.name, each.kind, each.default) for each in given] == [
            (each.name, each.kind, each.default) for each in described
        ]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def described_fields(document: dict[str, Any], route: Route) -> Iterator[tuple[str, dict[str, Any]]]:
    described = document["paths"][route.path][route.method.lower()]
    yield from ((each["name"], each["schema"]) for each in described.get("parameters", ()))
    body = described.get("requestBody")
    if body is not None:
        model = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        yield from document["components"]["schemas"][model]["properties"].items()


@pytest.mark.parametrize(("operation", "route"), ROUTED)
def test_the_api_describes_the_arguments_of_an_operation(
    document: dict[str, Any], operation: type[Operation[Any]], route: Route
) -> None:
    described = document["paths"][route.path][route.method.lower()]
    assert described["operationId"] == route.name
    assert described["description"].startswith(inspect.cleandoc(operation.__doc__ or ""))
    fields = dict(described_fields(document, route))
    for argument in arguments_of(operation):
        if argument.local_only is None and argument.kind is not Kind.POSITION:
            field = fields[route.names.get(argument.name, argument.name)]
            if argument.kind is not Kind.ROWS:
                assert argument.description in str(field)


@pytest.mark.parametrize(
    ("words", "operation", "left_out"),
    [
        (("recall",), Recall, {"budget"}),
        (("memory", "users"), ListUsers, set()),
        (("memory", "list"), ListMemories, set()),
        (("memory", "show"), ListEntries, set()),
        (("runs", "list"), ListRuns, set()),
    ],
)
def test_commands_have_an_option_for_each_argument(
    words: tuple[str, ...], operation: type[Operation[Any]], left_out: set[str]
) -> None:
    parser = dict(walk(_parser()))[words]
    given = {action.dest for action in parser._actions}
    given |= {f"{name}_id" for name in given & {"agent", "user"}}
    wanted = {each.name for each in arguments_of(operation) if each.kind is not Kind.POSITION}
    assert wanted - {each.name for each in arguments_of(operation) if each.local_only} - left_out <= given


@pytest.mark.parametrize(
    ("tool", "operation", "left_out"),
    [
        ("recall", Recall, {"agent_id", "user_id", "budget"}),
        ("list", ListEntriesOf, {"memory_id", "as_of", "include_retired"}),
    ],
)
def test_tools_take_the_arguments_that_a_model_may_choose(
    tool: str, operation: type[Operation[Any]], left_out: set[str]
) -> None:
    given = {{"kind": "content_type"}.get(name, name) for name in TOOLS[tool].arguments.model_fields}
    assert given - {"limit"} == set(names(operation)) - left_out - {"limit"}


@pytest.mark.parametrize("operation", [SearchMemories, SearchConversations])
def test_making_a_request_checks_its_owner_and_its_limit(operation: type[Operation[Any]]) -> None:
    for given in ({"user_id": ""}, {"agent_id": ""}, {"query": 7}, {"limit": None}, {"limit": -1}):
        with pytest.raises((ValueError, TypeError), match=next(iter(given))):
            operation(**{"query": "x", "agent_id": None, "user_id": "ada", **given})


def test_every_argument_of_an_operation_says_what_it_does() -> None:
    silent = {
        f"{operation.__name__}.{argument.name}"
        for operation in OPERATIONS
        for argument in arguments_of(operation)
        if not argument.description and argument.kind not in (Kind.OWNER_ID, Kind.KEY)
    }
    assert silent == set()
