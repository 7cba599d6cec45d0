"""The conformance suite of LangGraph, whole, on every database."""

from collections.abc import AsyncIterator

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from recollect.integrations.langgraph import Checkpointer
from recollect.testing.contract import in_event_loop


@in_event_loop
async def test_every_capability_is_implemented_and_passes(url: str) -> None:
    @checkpointer_test(name="recollect")
    async def checkpointers() -> AsyncIterator[Checkpointer]:
        async with Checkpointer(url, create_tables=True) as checkpointer:
            yield checkpointer

    report = await validate(checkpointers)
    assert {name: result.failures for name, result in report.results.items() if not result.passed} == {}
    assert set(report.results) == {capability.value for capability in Capability}
    assert len(report.results) == 8
    assert sum(result.tests_passed for result in report.results.values()) == 81
