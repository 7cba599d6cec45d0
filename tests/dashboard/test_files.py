"""The files of the dashboard, as the service gives them."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import recollect.server.dashboard as dashboard

from .places import Place

FILES = Path(dashboard.__file__).parent / "files"
OURS = sorted(path for path in FILES.rglob("*.js") if "vendor" not in path.parts)


@pytest.fixture
def client(place: Place) -> Iterator[httpx2.Client]:
    with place.client() as client:
        yield client


def words(language: str) -> dict[str, str]:
    text = (FILES / "words" / f"{language}.js").read_text("utf-8")
    return dict(re.findall(r'^  "(.+?)": "(.*)",$', text, re.MULTILINE))


@pytest.mark.parametrize("path", ["/", "/dashboard/app.js", "/dashboard/style.css", "/dashboard/icon.svg"])
def test_nothing_from_elsewhere_can_run_in_the_page(client: httpx2.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in answer.headers


def test_the_page_is_given_without_a_key(client: httpx2.Client) -> None:
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert re.findall(r"<script(?![^>]*src=)", answer.text) == []


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/",
        "/dashboard/nothing.js",
        "/dashboard/../serving.py",
        "/dashboard/%2e%2e/serving.py",
        "/dashboard/..%2fserving.py",
        "/dashboard/vendor/LICENSE.preact",
        "/dashboard//etc/passwd",
    ],
)
def test_there_is_nothing_but_the_files(client: httpx2.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_a_file_that_has_not_changed_is_not_sent_again(client: httpx2.Client) -> None:
    tag = client.get("/dashboard/app.js").headers["etag"]
    assert client.get("/dashboard/app.js", headers={"If-None-Match": tag}).status_code == 304
    assert client.get("/dashboard/app.js", headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_file_is_packed_for_those_who_can_unpack_it(client: httpx2.Client) -> None:
    plain = client.get("/dashboard/style.css", headers={"Accept-Encoding": "identity"})
    packed = client.get("/dashboard/style.css", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == plain.text
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2


def test_no_file_of_ours_names_another_place() -> None:
    ours = [*OURS, FILES / "index.html", FILES / "style.css"]
    named = {
        path.name: re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]+", path.read_text("utf-8")) for path in ours
    }
    assert {name: found for name, found in named.items() if found} == {}


def test_the_page_loads_all_its_modules_at_once() -> None:
    def imported(path: Path) -> set[Path]:
        found = re.findall(r'^(?:import|export)\b.*?from ?"(\..+?)"', path.read_text("utf-8"), re.MULTILINE)
        return {(path.parent / name).resolve() for name in found}

    needed, waiting = set[Path](), {(FILES / "app.js").resolve()}
    while waiting:
        needed |= waiting
        waiting = set().union(*map(imported, waiting)) - needed
    page = (FILES / "index.html").read_text("utf-8")
    named = set(re.findall(r'href="/dashboard/(.+?\.js)"|src="/dashboard/(app\.js)"', page))
    loaded = {(FILES / (one or other)).resolve() for one, other in named}
    assert loaded == needed


def test_every_vendored_file_has_its_licence_beside_it() -> None:
    vendored = (FILES / "vendor" / "README.md").read_text("utf-8")
    for path in (FILES / "vendor").glob("*.[jc]s*"):
        package = re.search(rf"^\| {re.escape(path.name)} \| ([\w-]+)", vendored, re.MULTILINE)
        assert package is not None, f"{path.name} is not in vendor/README.md"
        assert (FILES / "vendor" / f"LICENSE.{package[1]}").is_file()


def test_both_languages_say_the_same_things() -> None:
    english, chinese = words("en"), words("zh")
    assert len(english) > 150
    assert list(english) == list(chinese)
    holes = {
        key: (set(re.findall(r"\{\w+\}", english[key])), set(re.findall(r"\{\w+\}", chinese[key])))
        for key in english
    }
    assert {key: both for key, both in holes.items() if both[0] != both[1]} == {}


def test_every_word_that_is_said_is_in_the_dictionaries_and_the_other_way_round() -> None:
    source = "\n".join(path.read_text("utf-8") for path in OURS if path.parent.name != "words")
    said = set(re.findall(r'"([a-z_]+(?:\.[a-z_]+)*)"', source))
    families = set(re.findall(r"t\(`((?:[a-z]+\.)+)\$\{", source))
    counted = {
        f"{key}.{form}" for key in re.findall(r'count\("([a-z]+)"', source) for form in ("one", "other")
    }
    direct = set(re.findall(r'\bt\("([a-z_.]+)"', source))
    known = set(words("en"))
    assert direct | counted <= known
    assert {key for key in known - said - counted if not key.startswith(tuple(families))} == set()
