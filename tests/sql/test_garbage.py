"""Objects that are there to stay: the collector does not walk over them again."""

import subprocess
import sys

import pytest

_SCRIPT = """
import gc
from recollect.sql.garbage import keep_new_objects
gc.collect()
if {is_frozen}:
    gc.freeze()
frozen = gc.get_freeze_count()
with keep_new_objects():
    assert not gc.isenabled()
    kept = [[] for _ in range(10_000)]
assert gc.isenabled()
print(gc.get_freeze_count() - frozen >= len(kept))
"""


@pytest.mark.parametrize("is_frozen", [True, False])
def test_new_objects_are_frozen_where_the_heap_is(is_frozen: bool) -> None:
    script = _SCRIPT.format(is_frozen=is_frozen)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == f"{is_frozen}\n"
