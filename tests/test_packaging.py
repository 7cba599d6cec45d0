"""What the package says of itself to an installer."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEED_AN_OLDER_MCP = {"crewai", "strands"}


def test_all_means_every_extra_that_fits_together() -> None:
    extras = PROJECT["optional-dependencies"]
    named = {name for each in extras["all"] for name in re.findall(r"[\w-]+", each.partition("[")[2])}
    assert named == set(extras) - {"all"} - NEED_AN_OLDER_MCP


def test_the_package_names_its_authors_systems_and_topics() -> None:
    assert PROJECT["authors"]
    for kind in ("Operating System", "Topic"):
        assert any(each.startswith(f"{kind} :: ") for each in PROJECT["classifiers"]), kind


def test_the_papers_name_files_that_exist() -> None:
    for paper in ("CONTRIBUTING.md", "docs/explanation/architecture.md"):
        named = re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", (ROOT / paper).read_text())
        assert named, paper
        assert [each for each in named if not (ROOT / each).exists()] == [], paper


def test_links_of_the_papers_lead_somewhere() -> None:
    for paper in ("CONTRIBUTING.md", "SECURITY.md", "CODE_STYLE.md", "CHANGELOG.md"):
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / paper).read_text())
        assert [each for each in links if "://" not in each and not (ROOT / each).exists()] == [], paper
