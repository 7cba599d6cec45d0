"""A reader who installs what a page says, from the wheel, can run the examples of that page.

The install line of a page is its first `pip install …recollect-memory…`. A page without one needs Recollect
without extras. `make pages` runs this.
"""

import socket
import subprocess
from pathlib import Path

import httpx2
import pytest

from recollect.integrations.langgraph import Checkpointer
from recollect.testing.servers.processes import ending_with_us

from .. import documentation
from ..documentation import BLOCK, PAGES, ROOT, install_line
from ..integrations.langgraph.graphs import ask, chat_graph, config_of
from .environments import Environment, build_wheel

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

WITH_PYTHON = [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))]


class Environments:
    """One environment for each install line, made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wheel = build_wheel(folder)
        self._known: dict[str, Environment] = {}

    def of(self, packages: str) -> Environment:
        if packages not in self._known:
            place = self._folder / f"environment-{len(self._known)}"
            self._known[packages] = Environment.create(place, self._wheel, packages)
        return self._known[packages]


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    return Environments(tmp_path_factory.mktemp("environments"))


def grouped(pages: list[Path]) -> list[object]:
    """Pages with the same install line share a process, and so an environment."""
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=pytest.mark.xdist_group(install_line(page)))
        for page in pages
    ]


@pytest.mark.parametrize("page", grouped(WITH_PYTHON))
def test_the_examples_of_a_page_run_after_its_install_line(
    page: Path, environments: Environments, page_variables: dict[str, str], tmp_path: Path
) -> None:
    environment = environments.of(install_line(page))
    ended = environment.run(tmp_path, "-I", str(documentation.__file__), str(page), variables=page_variables)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.xdist_group("recollect-memory")
def test_nothing_but_the_wheel_and_its_dependencies_is_importable(
    environments: Environments, tmp_path: Path
) -> None:
    environment = environments.of("recollect-memory")
    found = environment.run(tmp_path, "-c", "import recollect; print(recollect.__file__)")
    assert found.stdout.startswith(str(Path(environment.python).parent.parent)), found
    for other in ("agents", "cryptography", "pytest", "sqlalchemy", "tests"):
        assert environment.run(tmp_path, "-c", f"import {other}").returncode != 0, other


@pytest.mark.xdist_group("recollect-memory[agents]")
def test_the_sample_of_the_readme_runs_as_a_file(environments: Environments, tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    (sample,) = BLOCK.findall(readme.read_text("utf-8"))
    (tmp_path / "sample.py").write_text(sample)
    ended = environments.of(install_line(readme)).run(tmp_path, "sample.py")
    assert ended.returncode == 0, ended.stderr
    assert "allergic to nuts" in ended.stdout
    assert "because: I'm Ada. I moved to Lisbon." in ended.stdout


@pytest.mark.xdist_group("recollect-memory[agents]")
@pytest.mark.parametrize("name", ["tutorial.md", "tutorial.zh.md"])
def test_the_tutorial_can_be_typed_at_the_prompt_that_it_names(
    name: str, environments: Environments, tmp_path: Path
) -> None:
    page = ROOT / "docs" / name
    assert "python -m asyncio" in page.read_text("utf-8")
    typed = "".join(f"{block}\n" for block in BLOCK.findall(page.read_text("utf-8")))
    ended = environments.of(install_line(page)).run(tmp_path, "-m", "asyncio", given=typed)
    assert "Error" not in ended.stderr, ended.stderr
    assert "user: My name is Ada." in ended.stdout


@pytest.mark.xdist_group("recollect-memory[server]")
def test_a_service_without_langgraph_says_what_reading_a_thread_needs(
    environments: Environments, tmp_path: Path
) -> None:
    with Checkpointer(tmp_path / "recollect.db") as checkpointer:
        chat_graph(checkpointer).invoke(ask("hello"), config_of("one", user_id="ada"))
    environment = environments.of(install_line(ROOT / "docs" / "how-to" / "serve-over-http.md"))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [environment.python, "-m", "recollect", "serve", "--url", "recollect.db", "--port", str(port)]
    with subprocess.Popen(
        [*ending_with_us(), *command], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as service:
        assert service.stdout is not None
        assert any(line.startswith("Recollect listens on ") for line in service.stdout)
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            assert [each["thread_id"] for each in client.get("/v1/threads").json()["items"]] == ["one"]
            for part in ("branches", "steps"):
                answer = client.get(f"/v1/threads/{part}", params={"thread_id": "one"})
                assert (answer.status_code, answer.json()["code"]) == (501, "extra_missing")
                assert "pip install 'recollect-memory[langgraph]'" in answer.json()["detail"]
        service.terminate()
