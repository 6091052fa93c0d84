"""The page of a run as HTML: one file that asks for nothing, runs only its own script and shows everything as text.

What is shown comes from agents, models and files and is trusted in nothing: it is escaped here, and what is shown only
when a row is opened lies in the page as JSON, which the script puts into text nodes. The policy in the head allows the
one script and the one style by their digests, so that not even an escape that was forgotten could run.
"""

import base64
import hashlib
import html
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

from llm_replay import Difference
from msgspec import UNSET

from session_snapshot.report import Failure
from session_snapshot.view.rows import Detail, Lane, Page, Row
from session_snapshot.view.text import Piece, abridged, changed_words, leaf_text
from session_snapshot.visible import visible

MOST_DIFFERENCES = 20
"""How many differences of a row are shown before it is opened."""

MOST_VALUE = 600
"""How many characters of a value that is new or gone are shown before its row is opened."""


def page_html(page: Page) -> str:
    """The whole file's text."""
    style = lanes_style(page.lanes) + resource("page.css")
    script = resource("page.js")
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy(script, style)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(page.name)} · session-snapshot</title>",
        f"<style>{style}</style>",
        f'<body class="{verdict_class(page)}">',
        *header(page),
        *filters(page),
        *run(page),
        f'<script type="application/json" id="details">{island(page.rows)}</script>',
        f"<script>{script}</script>",
    ]
    return "\n".join(parts) + "\n"


def resource(name: str) -> str:
    """A file of this package."""
    return files("session_snapshot.view").joinpath(name).read_text(encoding="utf-8")


def policy(script: str, style: str) -> str:
    """The content security policy: nothing but these two, by digest."""
    rules = ("default-src 'none'", f"script-src '{digest(script)}'", f"style-src '{digest(style)}'")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))


def digest(content: str) -> str:
    """A digest as the policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def text(content: str) -> str:
    """Any text as HTML that shows it."""
    return html.escape(visible(content))


def lanes_style(lanes: Sequence[Lane]) -> str:
    """The style that depends on how many lanes there are."""
    count = len(lanes)
    places = "".join(f".lane{number} > .summary {{ --lane: {number + 2}; }}\n" for number in range(count))
    return f":root {{ --lanes: {count}; }}\n{places}"


def verdict_class(page: Page) -> str:
    """How the page looks as a whole."""
    return "unheld" if not page.ran else "red" if page.failures else "green"


# ── the head ────────────────────────────────────────────────────────────────────────────────────────────────────────


def header(page: Page) -> Iterator[str]:
    """Name, verdict, what failed, what was expected, where the recording came from."""
    yield "<header>"
    yield f'<h1><span class="verdict">{verdict(page)}</span> {text(page.name)}</h1>'
    yield f"<p>{text(page.description)}</p>"
    yield from (failure_html(failure) for failure in page.failures)
    yield from (f'<p class="note">note: {text(note)}</p>' for note in page.notes)
    if page.stderr.strip():
        yield f"<details><summary>the agent's stderr</summary><pre>{text(page.stderr)}</pre></details>"
    for facts in (page.facts, page.counts):
        yield '<dl class="facts">'
        yield from (f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in facts)
        yield "</dl>"
    yield '<ul class="expect" aria-label="what the author expects">'
    yield from (expectation(told, held, page.ran) for told, held in page.expect)
    yield "</ul></header>"


def verdict(page: Page) -> str:
    """The verdict in words, not in colour alone."""
    if not page.ran:
        return "not run"
    count = len(page.failures)
    return f"✗ {count} failure{'s'[: count != 1]}" if count else "✓ green"


def failure_html(failure: Failure) -> str:
    """One failure; what it says at length is open at once."""
    detail = "\n".join(part for part in (failure.detail, failure.group) if part)
    head = f'<b class="surface">{text(failure.surface)}</b> {text(failure.what)}'
    if not detail:
        return f'<p class="failure">{head}</p>'
    return f'<details class="failure" open><summary>{head}</summary><pre>{text(detail)}</pre></details>'


def expectation(told: str, held: bool, ran: bool) -> str:
    """One line of ``[expect]``."""
    sign = "" if not ran else "✓ " if held else "✗ "
    return f'<li class="{"held" if held else "broken"}">{sign}<code>{text(told)}</code></li>'


# ── filters ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def filters(page: Page) -> Iterator[str]:
    """What is shown: lanes, kinds, only what differs, what is searched for; then the names of the lanes."""
    lanes = Counter(row.lane for row in page.rows)
    kinds = Counter(row.kind for row in page.rows)
    differing = sum(row.differs for row in page.rows)
    yield '<div id="top"><form id="filters" role="search">'
    yield '<div class="bar"><label class="find">search <input type="search" id="search" autocomplete="off"></label>'
    yield f'<label><input type="checkbox" id="differing"> differences only ({differing})</label>'
    yield '<button type="button" id="previous" title="p">previous difference</button>'
    yield '<button type="button" id="next" title="n">next difference</button>'
    yield '<button type="button" id="all">show all</button>'
    yield f'<output id="shown">{len(page.rows)} of {len(page.rows)} rows</output></div>'
    yield "<fieldset><legend>lanes</legend>"
    yield from (box("lane", lane.key, lane.name, lanes[lane.key]) for lane in page.lanes)
    yield "</fieldset><fieldset><legend>kinds</legend>"
    yield from (box("kind", kind, kind, count) for kind, count in kinds.items())
    yield '</fieldset></form><div class="lanes" aria-hidden="true"><span></span>'
    yield from (f'<span class="name {lane_class(lane.key)}">{text(lane.name)}</span>' for lane in page.lanes)
    yield "</div></div>"


def box(what: str, key: str, name: str, count: int) -> str:
    """One switch of a filter."""
    value = f'data-{what}="{text(key)}"'
    return f'<label><input type="checkbox" checked {value}> {text(name)} <small>{count}</small></label>'


# ── the run ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(page: Page) -> Iterator[str]:
    """The lanes with their rows."""
    yield "<main>"
    stripes = "".join(f'<span class="{lane_class(lane.key)}"></span>' for lane in page.lanes)
    yield f'<div class="stripes" aria-hidden="true"><span></span>{stripes}</div>'
    yield '<ol id="rows">'
    places = {lane.key: number for number, lane in enumerate(page.lanes)}
    names = {lane.key: lane.name for lane in page.lanes}
    for number, row in enumerate(page.rows):
        yield row_html(number, row, places.get(row.lane, 0), names.get(row.lane, row.lane))
    yield "</ol>"
    yield '<p id="nothing" hidden>No row is like that.</p>'
    yield "<noscript>Rows open, and filters work, with JavaScript only; it is all in this file.</noscript></main>"


SUMMARY = 'button type="button" class="summary" aria-expanded="false"'
HEADING = 'div class="summary" tabindex="-1"'
"""The head of a row that opens, and of one with nothing in it."""


def lane_class(key: str) -> str:
    """How a lane looks."""
    return key.partition(" ")[0]


def row_html(number: int, row: Row, place: int, lane: str) -> str:
    """One row: its summary in its lane, its differences below; its details come when it is opened."""
    head = SUMMARY if row.details else HEADING
    kind = "" if row.kind == "step" else f'<span class="kind">{text(row.kind)}</span> '
    sign = f'<span class="state">{text(row.state)}</span> ' if row.differs else ""
    source = f' <span class="source">{text(row.source)}</span>' if row.differs else ""
    shown = "".join(difference_html(each) for each in row.differences[:MOST_DIFFERENCES])
    more = len(row.differences) - MOST_DIFFERENCES
    rest = f"<p>… and {more} more, marked in the row's details</p>" if more > 0 else ""
    return (
        f'<li class="row {lane_class(row.lane)} lane{place} {"step" if row.kind == "step" else ""} {row.state}"'
        f' data-lane="{text(row.lane)}" data-kind="{text(row.kind)}" data-row="{number}">'
        f'<span class="number">{number + 1}</span>'
        f'<{head}><span class="lane">{text(lane)}</span> '
        f'{kind}{sign}<span class="title">{text(row.title)}</span>{source}</{head.split()[0]}>'
        + (f'<div class="differences">{shown}{rest}</div>' if shown else "")
        + "</li>"
    )


def difference_html(difference: Difference) -> str:
    """One difference: where it is, what was expected, what came."""
    path = f"<code>{text(difference.path)}</code> " if difference.path else ""
    return f'<div class="difference"><p>{path}{text(difference.kind)}</p>{sides(difference)}</div>'


def sides(difference: Difference) -> str:
    """What was expected and what came, changed words marked where both are texts."""
    old, new = difference.expected, difference.actual
    if isinstance(old, str) and isinstance(new, str):
        before, after = changed_words(old, new)
        return side("del", "−", before) + side("ins", "+", after)
    removed = "" if old is UNSET else side("del", "−", whole(old))
    return removed + ("" if new is UNSET else side("ins", "+", whole(new)))


def whole(value: Any) -> list[Piece]:
    """A value all of which is new or gone."""
    shown = value if isinstance(value, str) else leaf_text(value)
    return [Piece(abridged(shown, MOST_VALUE), True)]


def side(tag: str, sign: str, pieces: Iterable[Piece]) -> str:
    """One side of a difference."""
    shown = "".join(f"<{tag}>{text(p.text)}</{tag}>" if p.changed else text(p.text) for p in pieces)
    name = "expected" if tag == "del" else "actual"
    return f'<div class="{name}"><span class="sign" title="{name}">{sign}</span><span>{shown}</span></div>'


# ── details ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def island(rows: Sequence[Row]) -> str:
    """The details of all rows as JSON that cannot end the element it stands in."""
    value = [[[detail.heading, detail_text(detail)] for detail in row.details] for row in rows]
    encoded = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return encoded.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def detail_text(detail: Detail) -> str:
    """A detail as lines: its mark, its indentation in tabs, its text (which holds no line end)."""
    lines = (f"{line.mark}{TAB * line.depth}{line.text}" for line in detail.lines)
    return "\n".join(line.replace("\n", " ") for line in lines)


TAB = "\t"
