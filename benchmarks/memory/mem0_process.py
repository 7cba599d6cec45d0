"""mem0 in its own Python: it is given a line for each conversation, and tells how long `add` took.

Run with that Python: `mem0_process.py FOLDER BASE_URL API_KEY`. Everything is in the folder, the
model and the embedder are at the URL, and nothing is sent to anybody else.
"""

import importlib
import json
import os
import sys
from time import perf_counter
from typing import Any


def open_memory(folder: str, base_url: str, api_key: str) -> Any:
    """A memory as its documentation makes one, with the local vector store that comes with it."""
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder)
    reached = {"openai_base_url": base_url, "api_key": api_key}
    vectors = {"collection_name": "memories", "path": f"{folder}/vectors", "on_disk": True}
    return importlib.import_module("mem0").Memory.from_config(
        {
            "llm": {"provider": "openai", "config": {"model": "gpt-4o-mini", **reached}},
            "embedder": {"provider": "openai", "config": {"model": "text-embedding-3-small", **reached}},
            "vector_store": {"provider": "qdrant", "config": vectors},
            "history_db_path": f"{folder}/history.db",
        }
    )


def main() -> None:
    """Add conversations until the input ends."""
    memory = open_memory(*sys.argv[1:4])
    print(importlib.import_module("mem0").__version__, flush=True)
    for line in sys.stdin:
        given = json.loads(line)
        started = perf_counter()
        added = memory.add(given["messages"], user_id=given["user"])
        seconds = perf_counter() - started
        print(json.dumps({"seconds": seconds, "added": len(added["results"])}), flush=True)


if __name__ == "__main__":
    main()
