"""The TypeScript client: types from our document, checked by `tsc --strict`, run against the service."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.server.app import create_app
from recollect.server.settings import Settings

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


@pytest.fixture(scope="module")
def package() -> Path:
    """The client with its packages, as the lock file names them, and types for the routes of today."""
    document = create_app(Settings()).openapi()
    (CLIENT / "openapi.json").write_text(json.dumps(document))
    shutil.copy(CLIENT.parents[1] / "LICENSE", CLIENT)
    lock = (CLIENT / "package-lock.json").read_bytes()
    installed = CLIENT / "node_modules" / ".lock-of-recollect"
    if not installed.exists() or installed.read_bytes() != lock:
        npm("ci", "--no-audit", "--no-fund")
        installed.write_bytes(lock)
    npm("run", "generate")
    return CLIENT


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = {
        "memory": {"embedder": "none", "workers": 2, "own_process": False},
        "server": {"max_messages": 50, "max_page_size": 20},
        "database": {"url": str(tmp_path_factory.mktemp("typescript") / "recollect.db")},
    }
    with running(Settings.model_validate(settings)) as service:
        yield service


def npm(*words: str, **environment: str) -> str:
    command = ["npm", "--silent", *words]
    done = subprocess.run(
        command, cwd=CLIENT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_client_works_against_the_service(package: Path, service: Running) -> None:
    shutil.rmtree(package / "out", ignore_errors=True)
    output = npm("test", RECOLLECT_URL=service.url, RECOLLECT_KEY=service.make_key("admin", "typescript"))
    assert "fail 0" in output
    assert "skipped 0" in output


def test_the_package_could_be_published(package: Path) -> None:
    npm("run", "build")
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
    assert not any(path.startswith(("src/", "test/", "out/")) for path in files)
    assert (package / "dist" / "schema.d.ts").exists()


def test_a_program_that_uses_the_packed_package_compiles(package: Path, tmp_path: Path) -> None:
    npm("run", "build")
    (packed,) = json.loads(npm("pack", "--json", "--pack-destination", str(tmp_path)))
    installed = tmp_path / "node_modules" / "recollect-client"
    installed.mkdir(parents=True)
    shutil.unpack_archive(tmp_path / packed["filename"], tmp_path / "unpacked", "gztar")
    shutil.copytree(tmp_path / "unpacked" / "package", installed, dirs_exist_ok=True)
    for name in ("openapi-fetch", "openapi-typescript-helpers", "ai", "@ai-sdk", "@types", "zod"):
        (tmp_path / "node_modules" / name).symlink_to(package / "node_modules" / name)
    program = tmp_path / "program.mts"
    program.write_text(PROGRAM)
    compile_strictly(program)


@pytest.mark.proof
def test_a_second_tool_generates_a_client_that_compiles(package: Path, tmp_path: Path) -> None:
    npm("exec", "openapi-ts", "--", "-i", str(package / "openapi.json"), "-o", str(tmp_path / "made"))
    (tmp_path / "made" / "package.json").write_text('{"type": "module"}')
    compile_strictly(tmp_path / "made" / "index.ts", "--moduleResolution", "bundler", "--module", "esnext")


def compile_strictly(program: Path, *options: str) -> None:
    settings = options or ("--module", "nodenext", "--moduleResolution", "nodenext")
    npm(
        *("exec", "tsc", "--", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022"),
        *("--lib", "es2023,dom,dom.iterable", *settings, str(program)),
    )
