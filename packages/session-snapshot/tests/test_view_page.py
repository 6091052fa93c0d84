"""The page as HTML: nothing it shows can become markup or script, and nothing but its own script may run."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from llm_replay import Difference
from session_snapshot.report import Failure
from session_snapshot.view.page import MOST_DIFFERENCES, island, page_html, sides
from session_snapshot.view.rows import AGENT, MOST_DETAIL, Lane, Page, Row, json_detail, text_detail

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "<!--<script>",
    "]]>\u2028\u2029\0\ud800",
    "&lt;b&gt;",
]
HELD = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "h1",
    "h2",
    "span",
    "p",
    "b",
    "details",
    "summary",
    "pre",
}
HELD |= {
    "dl",
    "div",
    "dt",
    "dd",
    "ul",
    "li",
    "code",
    "form",
    "label",
    "input",
    "button",
    "output",
    "fieldset",
    "legend",
}
HELD |= {"small", "main", "ol", "del", "ins", "noscript", "script"}


def page_with(text, **more):
    """A page that says a text wherever a page says anything."""
    difference = Difference(f"/{text}", "changed", text, text + "!")
    details = (json_detail(text, {text: [text]}), text_detail(text, text))
    members = {
        "name": text,
        "description": text,
        "ran": True,
        "failures": [Failure("stdout", text, text, text)],
        "facts": [(text, text)],
        "counts": [(text, text)],
        "expect": [(text, True), (text, False)],
        "lanes": [Lane(AGENT, text), Lane(f"model {text}", text)],
        "rows": [
            Row(AGENT, text, text, 0, "changed", text, (difference,), details),
            Row(f"model {text}", "call", text, 0, "added", text, (Difference("", "added", actual={text: text}),)),
        ],
        "notes": [text],
        "stderr": text,
    }
    return Page(**(members | more))


class Reader(HTMLParser):
    """Reads a page as a browser does: its elements with their attributes, its text, its scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.content, self.open = set(), [], {}, ""
        self.words = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        self.open = tag if tag in ("script", "style") else ""
        if self.open:
            self.content.setdefault((tag, dict(attrs).get("type")), []).append("")

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open:
            key = [key for key in self.content if key[0] == self.open][-1]
            self.content[key][-1] += data
        else:
            self.words.append(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_content_is_text(text):
    page = page_html(page_with(text))
    page.encode()
    read, plain = Reader(page), Reader(page_html(page_with("plain")))
    assert read.tags <= HELD
    names = {name for name, _ in read.attributes}
    assert names == {name for name, _ in plain.attributes}, "no attribute that is not ours"
    assert not any(name.startswith("on") for name in names)
    counts = {key: len(found) for key, found in read.content.items()}
    assert counts == {("style", None): 1, ("script", "application/json"): 1, ("script", None): 1}
    assert json.loads(read.content[("script", "application/json")][0])[1] == []


def test_a_text_stands_in_the_page_as_it_is():
    words = "".join(Reader(page_html(page_with("<b>&amp;</b>"))).words)
    assert words.count("<b>&amp;</b>") > 10


def test_what_the_policy_allows_is_what_is_there():
    read = Reader(page_html(page_with("x")))
    policy = next(value for name, value in read.attributes if name == "content" and "script-src" in value)
    directives = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert directives["default-src"] == "'none'"
    for kind, directive in (("script", "script-src"), ("style", "style-src")):
        (content,) = read.content[(kind, None)]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"


def test_a_page_asks_for_nothing():
    page = page_html(page_with("x"))
    names = {name for name, _ in Reader(page).attributes}
    assert not names & {"src", "href", "srcset", "action", "data", "style", "ping", "background"}
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", page)


def test_the_same_page_has_the_same_bytes():
    assert page_html(page_with("x")) == page_html(page_with("x"))


@pytest.mark.parametrize("text", HOSTILE)
def test_details_lie_in_the_page_as_json(text):
    told = island([Row(AGENT, "x", "x", details=(text_detail(text, "a\tb\n\tc"),))])
    assert not {"<", ">", "&", "\u2028"} & set(told)
    assert json.loads(told) == [[[text, " a\tb\n \tc"]]]


def test_only_so_many_differences_are_shown_before_a_row_is_opened():
    many = tuple(Difference(f"/{n}", "added", actual=n) for n in range(MOST_DIFFERENCES + 5))
    page = page_html(page_with("x", rows=[Row(AGENT, "x", "x", 0, "changed", "", many)]))
    assert page.count('class="difference"') == MOST_DIFFERENCES
    assert "… and 5 more" in page


def test_a_detail_has_a_bound():
    detail = json_detail("x", ["y" * MOST_DETAIL, "z"])
    assert sum(len(line.text) for line in detail.lines) < MOST_DETAIL + 200
    assert detail.lines[-1].text == "… more is not shown"


@pytest.mark.parametrize(
    ("difference", "html"),
    [
        (Difference("", "changed", "a b", "a c"), ("a <del>b</del>", "a <ins>c</ins>")),
        (Difference("", "changed", 1, "1"), ("<del>1</del>", "<ins>1</ins>")),
        (Difference("", "added", actual={"a": None}), ("<ins>{&quot;a&quot;:null}</ins>",)),
        (Difference("", "removed", expected=[]), ("<del>[]</del>",)),
    ],
)
def test_both_sides_of_a_difference_are_there(difference, html):
    shown = sides(difference)
    assert all(part in shown for part in html)
    assert shown.count("<div") == len(html)


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, "✗ 1 failure<"),
        ({"failures": []}, "✓ green<"),
        ({"ran": False, "failures": []}, "not run<"),
    ],
)
def test_the_verdict_is_said_in_words(more, verdict):
    assert f'<span class="verdict">{verdict}' in page_html(page_with("x", **more))
