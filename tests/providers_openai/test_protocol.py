"""The server depends on the protocol of chat providers, and on no implementation."""

import ast
from pathlib import Path

import recollect

SOURCE = Path(recollect.__file__).parent


def test_the_server_imports_nothing_from_a_provider() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in (SOURCE / "server").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and "providers.openai" in (node.module or "")
    ]
    assert found == [], "use providers.protocol, providers.errors and providers.factory"
