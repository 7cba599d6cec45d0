"""The reference cannot drift: the site has every public name, and the overview its signatures."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import recollect

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parent.parent
OVERVIEW = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
PAGES = sorted((ROOT / "docs" / "reference" / "python").glob("*.md"))
CALL = re.compile(r"`(?:await )?([\w.]*\w)\(([^`]*)\)`")
OTHERS = (
    "RunConfig",  # of the Agents SDK
    "recollect.integrations.crewai.MemoryStorage",  # tests/mcp1
    "recollect.integrations.strands.MemoryHooks",
    "recollect.integrations.strands.Repository",
)
ELSEWHERE = (
    "recollect.integrations.anthropic",
    "recollect.integrations.langgraph",
    "recollect.integrations.openai_agents",
    "recollect.providers.openai.provider",
    "recollect.providers.openai.registry",
)


def directives() -> list[str]:
    """What the pages have mkdocstrings tell, in their order."""
    told = "\n".join(page.read_text("utf-8") for page in PAGES)
    return re.findall(r"^::: (\S+)$", told, re.MULTILINE)


def test_every_public_name_has_one_place_in_the_generated_reference() -> None:
    placed = directives()
    assert len(placed) == len(set(placed))
    assert {f"recollect.{name}" for name in recollect.__all__} - set(placed) == set()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` makes it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_site_tells_each_name_with_its_docstring(site: Path) -> None:
    pages = {page.stem: page.read_text("utf-8") for page in (site / "reference" / "python").glob("*.html")}
    anchors = {name for page in pages.values() for name in re.findall(r'id="(recollect\.[\w.]+)"', page)}
    assert set(directives()) - anchors == set()
    assert "recollect.MemoryStore.record_conversation" in anchors  # what is inherited is told too
    assert "Append a batch: all of its items or none." in pages["sessions"]


def test_the_site_needs_nothing_from_elsewhere(site: Path) -> None:
    """Whoever reads it offline sees all of it, and nobody else learns that it is read."""
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|link|iframe)[^>]*(?:src|href)=\"(https?:[^\"]*)", page.read_text("utf-8")
        )
        assert [address for address in loaded if "canonical" not in address] == [], page.name


def parameters(told: str) -> dict[str, object]:
    """The parameters of a signature as the page tells it, each with its default, `...` where it has none."""
    text = told.replace("=…", "=...").replace(", …", "").replace("…", "")
    function = ast.parse(f"def told({text}): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    before = [None] * (len(given.posonlyargs) + len(given.args) - len(given.defaults))
    defaults = [*before, *given.defaults, *given.kw_defaults]
    return {
        argument.arg: ... if default is None else ast.literal_eval(default)
        for argument, default in zip(named, defaults, strict=True)
    }


def meant(name: str) -> Iterator[object]:
    """Everything that a name on the page may stand for."""
    modules = [recollect, *map(import_module, ELSEWHERE)]
    if name.startswith("recollect."):
        module, _, last = name.rpartition(".")
        yield getattr(import_module(module), last)
        return
    owner, _, member = name.rpartition(".")
    for module in modules:
        public = list(getattr(module, "__all__", vars(module)))
        for each in public:
            if each == name:
                yield getattr(module, each)
            value = getattr(module, each)
            if inspect.isclass(value) and owner in ("", each):
                yield from filter(None, [getattr(value, member, None)])


def holds(told: dict[str, object], what: object) -> bool:
    """Whether something can be called so: the parameters exist, with these defaults where they are told."""
    if not callable(what):
        return False
    there = inspect.signature(what).parameters
    takes_more = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in there.values())
    return all(
        default in (..., there[name].default) if name in there else takes_more
        for name, default in told.items()
    )


def test_the_signatures_of_the_overview_hold() -> None:
    told = [call for call in CALL.findall(OVERVIEW) if call[0] not in OTHERS]
    assert len(told) > 100
    assert [
        name for name, rest in told if not any(holds(parameters(rest), what) for what in meant(name))
    ] == []
