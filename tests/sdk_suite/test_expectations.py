"""The committed list of expected failures: complete, explained, and shown on its page."""

import json
from dataclasses import replace
from importlib.metadata import version

from . import expectations as lists
from .expectations import UNEXPLAINED, Expectations, Reason
from .running import Outcomes


def test_the_list_is_for_the_installed_version_of_the_sdk() -> None:
    assert lists.read().sdk == version("openai-agents"), "run python -m tests.sdk_suite --update"


def test_every_expected_failure_has_one_reason() -> None:
    known = lists.read()
    assert not known.unexplained
    assert all(reason.name and reason.why and reason.tests for reason in known.reasons)
    assert sum(len(reason.tests) for reason in known.reasons) == len(known.tests)


def test_the_page_shows_the_list() -> None:
    known = lists.read()
    assert lists.PAGE.read_text() == lists.as_page(known), "run python -m tests.sdk_suite --page"
    assert lists.LIST.read_text() == lists.as_toml(known)


KNOWN = Expectations("1", [Reason("a", "why", ["f::a", "f::b"]), Reason("b", "why", ["f::c"], may_pass=True)])


def test_new_failures_and_unexpected_passes_are_found() -> None:
    outcomes = Outcomes({"f::b"}, {"f::a": "", "f::d": ""})
    assert KNOWN.new_failures(outcomes) == {"f::d"}
    assert KNOWN.gone(outcomes) == {"f::b"}, "a test that depends on who is faster may pass"


def test_an_update_keeps_reasons_and_asks_for_new_ones() -> None:
    updated = KNOWN.updated(Outcomes({"f::b"}, {"f::a": "", "f::d": ""}), "2")
    assert updated.sdk == "2"
    assert [(reason.name, reason.tests) for reason in updated.reasons] == [
        ("a", ["f::a"]), ("b", ["f::c"]), (UNEXPLAINED, ["f::d"]),
    ]  # fmt: skip
    assert updated.unexplained == {"f::d"}
    mended = updated.updated(Outcomes({"f::d"}, {"f::a": ""}), "2")
    assert mended.reasons == [replace(KNOWN.reasons[0], tests=["f::a"]), KNOWN.reasons[1]]


def test_a_test_without_an_end_and_one_with_a_failing_fixture_have_failed() -> None:
    entries = [
        ("f::a", "started"), ("f::a", "passed"),
        ("f::b", "started"), ("f::b", "passed"), ("f::b", "failed"),
        ("f::c", "started"), ("f::c", "skipped"),
        ("f::d", "started"),
    ]  # fmt: skip
    outcomes = Outcomes(set(), {})
    outcomes.add([json.dumps({"test": test, "outcome": outcome, "error": ""}) for test, outcome in entries])
    assert (outcomes.passed, set(outcomes.failed)) == ({"f::a"}, {"f::b", "f::d"})
