"""Messages as Markdown: shown as their writer meant them, and never as anything else."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from .places import Place, overflow, severe_violations

RICH = """# A plan

Some *emphasis*, **weight**, ~~nothing~~ and `inline code`.

1. first
2. second
   - inner

> quoted

| city | days |
|---|---|
| Porto | 2 |

[the map](https://maps.example/porto?x=1&y=2) and https://plain.example/path

```python
def greet(name):  # 问候
    return "hello " + name
```
"""
LINES = "one\ntwo"
ATTACKS = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "<svg onload=\"document.title='owned'\"></svg>",
    "<a href=\"javascript:document.title='owned'\">x</a>",
    "[click](javascript:document.title='owned')",
    "[click](JaVaScRiPt:document.title='owned')",
    "[click](&#106;avascript:document.title='owned')",
    "[click](java\tscript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[click](vbscript:msgbox(1))",
    "[click](file:///etc/passwd)",
    "[click](//elsewhere.example/path)",
    "[click](/v1/users)",
    "<javascript:alert(1)>",
    "![pixel](https://tracker.example/pixel.png)",
    "![pixel](data:image/svg+xml;base64,PHN2Zy8+)",
    '![a](https://tracker.example/x.png"onerror="alert(1))',
    "[x]: https://tracker.example/ref.png\n\n![x]",
    "```html\n<script>document.title='owned'</script>\n```",
    '```"><img src=x onerror=alert(1)>\ncode\n```',
    "`<img src=x onerror=alert(1)>`",
    "[<img src=x onerror=alert(1)>](https://safe.example)",
    "hidden &#x202E;gnp.exe and [link\u202e](https://safe.example)",
    "<style>body{display:none}</style><iframe src='https://frame.example'></iframe>",
    "<https://auto.example/<script>alert(1)</script>>",
]
SIZE = 20_000
HUGE = {
    "quotes": ">" * SIZE + "a",
    "lists": "\n".join(" " * (2 * depth) + "- a" for depth in range(300)),
    "brackets": "[" * SIZE,
    "links": "[a](" * (SIZE // 4),
    "images": "![" * (SIZE // 2),
    "underscores": "_" * SIZE + "a",
    "emphasis": "*_" * (SIZE // 2),
    "stars": "*" * (SIZE // 2) + "a" + "*" * (SIZE // 2),
    "backticks": "a`b ``" * (SIZE // 6),
    "table": "|a" * 2000 + "\n" + "|-" * 2000 + "\n" + "|b" * 2000,
    "angles": "<" * SIZE,
    "code": "```js\n" + "/*" * (SIZE // 2) + "\n```",
    "strings": "```py\n" + '"\\' * (SIZE // 2) + "\n```",
}


def said(place: Place, user: str, *texts: str) -> str:
    """A conversation in which a user says something; its id."""
    messages = [{"role": "user", "content": text} for text in texts]
    body = {"agent_id": "assistant", "user_id": user, "messages": messages}
    with place.client() as client:
        answer = client.post("/v1/conversations", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["conversation_id"])


def messages(page: Page, place: Place, conversation: str) -> Locator:
    place.open(page, f"/conversations/{conversation}")
    expect(page.locator(".markdown").first).to_be_visible()
    return page.locator(".message")


def test_markdown_is_formatted_and_code_has_colours(page: Page, place: Place) -> None:
    first, second = messages(page, place, said(place, "rita", RICH, LINES)).all()
    expect(first.locator(".heading-1")).to_have_text("A plan")
    expect(first.locator("em")).to_have_text("emphasis")
    expect(first.locator("strong")).to_have_text("weight")
    expect(first.locator("s")).to_have_text("nothing")
    expect(first.locator("p > code")).to_have_text("inline code")
    expect(first.locator("ol > li")).to_have_count(2)
    expect(first.locator("ol ul > li")).to_have_text("inner")
    expect(first.locator("blockquote")).to_have_text("quoted")
    expect(first.locator("td")).to_have_text(["Porto", "2"])
    assert first.locator("pre").inner_text() == 'def greet(name):  # 问候\n    return "hello " + name'
    expect(first.locator(".code-keyword")).to_have_text(["def", "return"])
    expect(first.locator(".code-string")).to_have_text('"hello "')
    expect(first.locator(".code-comment")).to_have_text("# 问候")
    links = first.locator("a").all()
    assert [link.get_attribute("href") for link in links] == [
        "https://maps.example/porto?x=1&y=2",
        "https://plain.example/path",
    ]
    assert all("noopener" in str(link.get_attribute("rel")) for link in links)
    assert second.locator(".markdown").inner_text() == LINES
    assert severe_violations(page) == []
    assert overflow(page) == 0


def test_a_reader_can_see_what_was_written(page: Page, place: Place) -> None:
    written = messages(page, place, said(place, "rosa", "Some *emphasis*."))
    expect(written.locator("em")).to_be_visible()
    page.get_by_label("Format Markdown").uncheck()
    expect(written.get_by_text("Some *emphasis*.", exact=True)).to_be_visible()
    page.reload()
    expect(written.get_by_text("Some *emphasis*.", exact=True)).to_be_visible()
    page.get_by_label("Language").select_option("zh")
    page.get_by_label("显示 Markdown 格式").check()
    expect(written.locator("em")).to_be_visible()


def test_no_message_runs_loads_or_leads_astray(page: Page, place: Place) -> None:
    shown = messages(page, place, said(place, "mallet", *ATTACKS))
    expect(shown).to_have_count(len(ATTACKS))
    inside = page.locator(".markdown")
    for forbidden in ("img", "script", "style", "iframe", "svg", "object", "form", "input", "base", "link"):
        assert inside.locator(forbidden).count() == 0, forbidden
    attributes: list[str] = page.evaluate(
        "[...document.querySelectorAll('.markdown *')].flatMap((each) => each.getAttributeNames())"
    )
    assert set(attributes) <= {"class", "dir", "start", "tabindex", "href", "rel", "target", "title"}
    hrefs = [str(link.get_attribute("href")) for link in inside.locator("a").all()]
    assert [href for href in hrefs if not href.startswith(("https://", "mailto:"))] == []
    assert "https://tracker.example/pixel.png" in hrefs  # a link in place of an image
    assert "owned" not in page.title().split(" · ")[-1]
    expect(shown.nth(4)).to_contain_text("[click](javascript:document.title='owned')")
    expect(shown.nth(22)).to_contain_text("hidden ⟨U+202E⟩gnp.exe and link⟨U+202E⟩")
    # The watch sees to it that nothing was asked of another host, and that no error was reported.


def test_huge_and_nested_markdown_does_not_stop_the_page(page: Page, place: Place) -> None:
    shown = messages(page, place, said(place, "hugo2", *HUGE.values()))
    expect(shown).to_have_count(len(HUGE))
    while page.get_by_role("button", name="Show all").count():
        page.get_by_role("button", name="Show all").first.click()
    expect(page.get_by_role("button", name="Show all")).to_have_count(0)
    assert page.evaluate("1 + 1") == 2
    assert _depth(page) < 200


def _depth(page: Page) -> Any:
    """How deep the deepest element of a message is."""
    return page.evaluate(
        """Math.max(...[...document.querySelectorAll('.markdown *')].map((each) => {
             let depth = 0;
             for (let at = each; at; at = at.parentElement) depth += 1;
             return depth;
           }))"""
    )


@pytest.mark.proof
def test_a_conversation_of_many_messages_is_read_from_any_place(page: Page, place: Place) -> None:
    many = [{"role": "user", "content": f"This is *{number}*."} for number in range(1000)]
    body: dict[str, Any] = {"agent_id": "assistant", "user_id": "lang", "messages": many}
    with place.client() as client:
        conversation = str(client.post("/v1/conversations", json=body).json()["conversation_id"])
        for _ in range(4):
            path = f"/v1/conversations/{conversation}/messages"
            assert client.post(path, json={"messages": many}).status_code == 201
    shown = messages(page, place, conversation)
    expect(shown).to_have_count(100)
    page.get_by_label("Go to message").fill("3501")
    page.get_by_role("button", name="Go", exact=True).click()
    expect(page.get_by_text("This is 500.", exact=True)).to_be_visible()
    assert page.locator(".message").count() <= 200
    page.get_by_role("button", name="Last").click()
    expect(page.get_by_text("This is 999.", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    page.get_by_role("button", name="First").click()
    expect(page.get_by_text("This is 0.", exact=True)).to_be_visible()
    with place.client() as client:  # its many runs would fill the lists of other tests
        assert client.delete(f"/v1/conversations/{conversation}").status_code == 200
