"""The TypeScript client: types from our document, checked by `tsc --strict`, run against the service.

Programs use it as `npm pack` makes it: in the Node of the machine and a newer one, Deno, Bun, and a browser.
"""

import json
import os
import platform
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from recollect.server.app import create_app
from recollect.server.settings import Settings

from ..dashboard.conftest import chromium as chromium
from ..memory.remote.test_network import Cutting, listening
from ..server.routes.running import Running, running

PROGRAM = """
import { type Entry, NotFoundError, Recollect } from "recollect-client";
import { recollectMemory } from "recollect-client/ai-sdk";

const client = new Recollect({ baseUrl: "https://host", key: "rk_x" });
export const middleware = recollectMemory({ client, agentId: "assistant", userId: "ada" });
export async function texts(memoryId: string): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of client.entries(memoryId)) found.push((entry satisfies Entry).content_text);
  // @ts-expect-error: an entry has no such field
  for await (const entry of client.entries(memoryId)) found.push(entry.nonsense);
  return found;
}
export const isMissing = (error: unknown): boolean => error instanceof NotFoundError;
"""
CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
RUNTIMES = CLIENT / "runtimes"
_MACHINE = "x64" if platform.machine() == "x86_64" else "arm64"
_BUN = "x64-baseline" if _MACHINE == "x64" else "aarch64"
NODE = RUNTIMES / "node_modules" / f"node-linux-{_MACHINE}" / "bin" / "node"
COMMANDS = {
    "node": [NODE],
    "deno": [
        RUNTIMES / "node_modules" / "@deno" / f"linux-{_MACHINE}-glibc" / "deno",
        *("run", "--no-prompt", "--allow-env", "--allow-net=127.0.0.1"),
    ],
    "bun": [RUNTIMES / "node_modules" / "@oven" / f"bun-linux-{_BUN}" / "bin" / "bun"],
}
OUTCOME = {
    "found": "Ada is allergic to nuts: 花生过敏 🥜",
    "pages": [f"line {number}" for number in range(25)],
    "chat": ["turn.started", "text.delta", "turn.completed"],
    "error": ["NotFoundError", "not_found", 404],
    "storedAfterLostAnswers": 1,
}


@pytest.fixture(scope="module")
def package() -> Path:
    """The client with its packages, as the lock file names them, and types for the routes of today."""
    document = create_app(Settings()).openapi()
    (CLIENT / "openapi.json").write_text(json.dumps(document))
    shutil.copy(CLIENT.parents[1] / "LICENSE", CLIENT)
    install(CLIENT)
    npm("run", "generate")
    npm("run", "build")
    return CLIENT


@pytest.fixture(scope="module")
def program(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs that use the packed package, compiled."""
    folder = tmp_path_factory.mktemp("program")
    modules = folder / "node_modules"
    (packed,) = json.loads(npm("pack", "--json", "--pack-destination", str(folder)))
    shutil.unpack_archive(folder / packed["filename"], folder / "unpacked", "gztar")
    shutil.copytree(folder / "unpacked" / "package", modules / "recollect-client")
    for name in ("openapi-fetch", "openapi-typescript-helpers", "ai", "@ai-sdk", "@types", "zod"):
        (modules / name).symlink_to(package / "node_modules" / name)
    for name in ("smoke.ts", "run.js", "page.html"):
        shutil.copy(RUNTIMES / name, folder)
    (folder / "program.ts").write_text(PROGRAM)
    manifest = {"type": "module", "dependencies": {"recollect-client": "*"}}
    (folder / "package.json").write_text(json.dumps(manifest))
    compile_strictly(folder / "program.ts", folder / "smoke.ts", emit=True)
    return folder


@pytest.fixture(scope="module")
def origin(program: Path) -> Iterator[str]:
    """A site with the programs."""
    serve = partial(_QuietHandler, directory=str(program))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: the output belongs to the tests."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, origin: str) -> Iterator[Running]:
    settings = {
        "memory": {"embedder": "none", "workers": 2, "own_process": False},
        "server": {"max_messages": 50, "max_page_size": 20, "cors_origins": [origin]},
        "database": {"url": str(tmp_path_factory.mktemp("typescript") / "recollect.db")},
    }
    with running(Settings.model_validate(settings)) as service:
        yield service


def install(folder: Path) -> None:
    """Install the packages of a folder by its lock file, if they are not."""
    lock = (folder / "package-lock.json").read_bytes()
    installed = folder / "node_modules" / ".lock-of-recollect"
    if not installed.exists() or installed.read_bytes() != lock:
        npm("ci", "--no-audit", "--no-fund", "--ignore-scripts", folder=folder)
        installed.write_bytes(lock)


def npm(*words: str, folder: Path = CLIENT, **environment: str) -> str:
    return run(["npm", "--silent", *words], folder, environment)


def run(command: list[str | Path], folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def places_of(service: Running) -> Iterator[dict[str, str]]:
    """What a program needs to know, while two of its requests are answered into the void."""
    cutting = Cutting(service.url, cuts=2)
    server = listening(cutting)
    url = service.do(server.__aenter__())
    try:
        yield {"url": service.url, "cuttingUrl": url, "key": service.make_key("admin", "typescript")}
    finally:
        service.do(server.__aexit__(None, None, None))
    sent = [request for request in cutting.requests if request.startswith(b"POST")]
    assert len(sent) == 3
    assert len(set(map(idempotency_key, sent))) == 1


def idempotency_key(request: bytes) -> bytes:
    (key,) = (line for line in request.splitlines() if line.lower().startswith(b"idempotency-key:"))
    return key


def test_the_client_works_against_the_service(package: Path, service: Running) -> None:
    shutil.rmtree(package / "out", ignore_errors=True)
    output = npm("test", RECOLLECT_URL=service.url, RECOLLECT_KEY=service.make_key("admin", "typescript"))
    assert "fail 0" in output
    assert "skipped 0" in output


def test_the_package_could_be_published(package: Path) -> None:
    (packed,) = json.loads(npm("pack", "--dry-run", "--json"))
    files = {file["path"] for file in packed["files"]}
    assert {
        "package.json",
        "README.md",
        "LICENSE",
        "dist/index.js",
        "dist/index.d.ts",
        "dist/ai-sdk.js",
    } <= files
    assert not any(path.startswith(("src/", "test/", "out/", "runtimes/")) for path in files)
    assert (package / "dist" / "schema.d.ts").exists()


def test_a_program_that_uses_the_packed_package_compiles(program: Path) -> None:
    assert {"program.js", "smoke.js"} <= {path.name for path in program.iterdir()}


def test_the_client_works_in_a_browser(service: Running, origin: str, chromium: str) -> None:
    with places_of(service) as places, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{origin}/page.html")
        page.wait_for_function("globalThis.smoke !== undefined")
        outcome: dict[str, Any] = page.evaluate("places => smoke(places)", places)
        browser.close()
    assert outcome == OUTCOME


@pytest.fixture(scope="module")
def runtimes() -> Path:
    install(RUNTIMES)
    return RUNTIMES


@pytest.mark.proof
@pytest.mark.usefixtures("runtimes")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_client_works_in_other_runtimes(
    name: str, program: Path, service: Running, tmp_path: Path
) -> None:
    with places_of(service) as places:
        environment = {
            "RECOLLECT_URL": places["url"],
            "CUTTING_URL": places["cuttingUrl"],
            "RECOLLECT_KEY": places["key"],
            "DENO_DIR": str(tmp_path),
            "DENO_NO_UPDATE_CHECK": "1",
        }
        output = run([*COMMANDS[name], "run.js"], program, environment)
    assert json.loads(output) == OUTCOME


@pytest.mark.proof
def test_the_middleware_works_with_the_next_version_of_the_ai_sdk(
    package: Path, runtimes: Path, service: Running, tmp_path: Path
) -> None:
    for name in ("src", "test"):
        shutil.copytree(package / name, tmp_path / name)
    for name in ("tsconfig.json", "tsconfig.test.json", "package.json"):
        shutil.copy(package / name, tmp_path)
    (tmp_path / "node_modules").mkdir()
    for name in ("openapi-fetch", "openapi-typescript-helpers", "@types", "undici-types"):
        (tmp_path / "node_modules" / name).symlink_to(package / "node_modules" / name)
    for name in ("ai", "@ai-sdk", "zod"):
        (tmp_path / "node_modules" / name).symlink_to(runtimes / "node_modules" / name)
    npm("exec", "tsc", "--", "--project", str(tmp_path / "tsconfig.test.json"))
    key = service.make_key("admin", "typescript")
    environment = {"RECOLLECT_URL": service.url, "RECOLLECT_KEY": key}
    output = run([NODE, "--test", "out/test/ai-sdk.test.js"], tmp_path, environment)
    assert "fail 0" in output
    assert "pass 0" not in output


@pytest.mark.proof
def test_a_second_tool_generates_a_client_that_compiles(package: Path, tmp_path: Path) -> None:
    npm("exec", "openapi-ts", "--", "-i", str(package / "openapi.json"), "-o", str(tmp_path / "made"))
    (tmp_path / "made" / "package.json").write_text('{"type": "module"}')
    compile_strictly(tmp_path / "made" / "index.ts", bundled=True)


def compile_strictly(*programs: Path, bundled: bool = False, emit: bool = False) -> None:
    module = ("esnext", "bundler") if bundled else ("nodenext", "nodenext")
    npm(
        *("exec", "tsc", "--", "--strict", "--skipLibCheck", "--target", "es2022"),
        *("--lib", "es2023,dom,dom.iterable", "--module", module[0], "--moduleResolution", module[1]),
        *(() if emit else ("--noEmit",)),
        *map(str, programs),
    )
