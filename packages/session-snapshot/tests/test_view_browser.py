"""The page in a real browser, from a file and without a network: it loads, shows, filters, opens, and runs nothing that
it shows.

The browser is Chromium or Chrome with its driver. ``SNAPSHOT_VIEW_SCREENSHOT`` names a folder for pictures of it.
"""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from session_snapshot.replay import replay_seen
from session_snapshot.runroot import run_root
from session_snapshot.view.page import page_html
from session_snapshot.view.rows import AGENT, FILES, Lane, Page, Row, fresh, json_detail
from session_snapshot.view.write import page_of_seen
from session_snapshot.visible import visible

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "Google Chrome")
PLACES = (
    str(Path(os.environ.get("PROGRAMFILES", "")) / "Google" / "Chrome" / "Application"),
    "/Applications/Google Chrome.app/Contents/MacOS",
)
"""Where Chrome lies on systems that have it in no path."""

ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
WIDE, NARROW = (1400, 1000), (500, 900)

RAN = "window.ran = (window.ran || 0) + 1"
HOSTILE = (
    f"</script><script>{RAN}</script>",
    f'<img src="x" onerror="{RAN}">',
    f"<svg onload='{RAN}'></svg>",
    f"<a href='javascript:{RAN}' autofocus onfocus='{RAN}'>x</a>",
    "<!--<script>",
    "\u202egnp.exe\u2028",
)


def found(names, *folders):
    """The first of these programs that is there, in the path or in one of these folders."""
    path = os.pathsep.join([*folders, os.environ.get("PATH", "")])
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    """A browser with a profile of its own."""
    program = found(BROWSERS, *PLACES)
    driver = found(["chromedriver"], os.environ.get("CHROMEWEBDRIVER", ""))
    if program is None or driver is None:
        missing = "chromium" if program is None else "chromedriver"
        pytest.skip(f"there is no {missing} here (apt-get install chromium chromium-driver)")
    os.environ["SE_OFFLINE"] = "true"  # the programs are named: nothing is to be looked for, or sent, anywhere
    options = Options()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


class Shown:
    """A page that is open in the browser."""

    def __init__(self, browser, html, path):
        path.write_text(html, encoding="utf-8", newline="")
        self.browser = browser
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.set_window_size(*WIDE)
        browser.get(path.resolve().as_uri())

    def run(self, script, *arguments):
        return self.browser.execute_script(f"return {script}", *arguments)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        (element,) = self.find(selector)
        return element

    def visible(self):
        """The numbers of the rows that have a place on the page."""
        return self.run(
            "[...document.querySelectorAll('#rows > li')].filter((row) => row.offsetHeight > 0)"
            ".map((row) => Number(row.dataset.row))"
        )

    def told(self):
        return self.one("#shown").text

    def press(self, keys):
        self.browser.switch_to.active_element.send_keys(keys)

    def focused(self):
        """The number of the row that has the focus."""
        return self.run("Number(document.activeElement.closest('#rows > li')?.dataset.row ?? -1)")

    def console(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def picture(self, name):
        folder = os.environ.get("SNAPSHOT_VIEW_SCREENSHOT")
        if folder:
            self.browser.save_screenshot(str(Path(folder) / f"{name}.png"))


@pytest.fixture
def show(chrome, tmp_path):
    """Open a page; whatever it is, the browser has nothing to complain of and asked nobody for anything."""
    opened = []

    def opener(page):
        opened.append(Shown(chrome, page_html(page), tmp_path / "page.html"))
        return opened[-1]

    yield opener
    for shown in opened:
        assert shown.console() == []
        assert shown.run("performance.getEntriesByType('resource').map((entry) => entry.name)") == []
        assert shown.run("window.ran") is None


@pytest.fixture
def red(suite):
    """The page of a real run that is red: a changed text, a frame too many, one too few, a file nobody expects, a
    drifted request; and hostile content wherever an agent can put it."""
    for text in HOSTILE:
        suite.append("stdout.golden.jsonl", suite.rows({"jsonrpc": "2.0", "method": text, "params": {text: text}}))
    suite.edit("stdout.golden.jsonl", "hello there world", "hello their world")
    suite.edit("requests.golden.jsonl", '"stream":true', '"stream":true,"temperature":0.5')
    suite.edit("scenario.toml", 'description = "A turn."', f"description = {HOSTILE[1]!r}")
    hostile = [["update", "usage_update", {"title": text, text: [text]}] for text in HOSTILE]
    suite.plan(
        session_prompt=[
            ["hear"],
            ["call"],
            *hostile,
            ["say"],
            ["write", "new.html", "\n".join(HOSTILE)],
            ["stderr", HOSTILE[0]],
            ["respond", {"stopReason": "end_turn"}],
        ]
    )
    with run_root() as base:
        page = page_of_seen(asyncio.run(replay_seen(suite.place, base)))
    assert {row.state for row in page.rows} == {"", "same", "changed", "added", "removed"}
    return page


def numbers(page, fits):
    """The numbers of the rows that fit."""
    return [number for number, row in enumerate(page.rows) if fits(row)]


# ── loading and showing ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_changed_field_is_there_and_seen(red, show):
    shown = show(red)
    shown.picture("red")
    (number,) = numbers(red, lambda row: row.kind == "agent_message_chunk")
    for tag, word in (("del", "their"), ("ins", "there")):
        (mark,) = shown.find(f'[data-row="{number}"] .differences {tag}')
        assert (mark.text, mark.is_displayed()) == (word, True)
        assert min(mark.size.values()) > 0
    assert shown.one(".verdict").text == f"✗ {len(red.failures)} failures"
    assert len(shown.find("header .failure")) == len(red.failures)


def test_every_row_is_seen_at_first(red, show):
    shown = show(red)
    assert shown.visible() == numbers(red, lambda _: True)
    assert shown.told() == f"{len(red.rows)} of {len(red.rows)} rows"


def test_rows_stand_under_the_name_of_their_lane(red, show):
    shown = show(red)
    for place, lane in enumerate(red.lanes):
        (name, *_) = shown.find("#top .name")[place : place + 1]
        rows = numbers(red, lambda row, lane=lane: row.lane == lane.key and row.kind != "step")
        assert name.text == lane.name
        for number in rows[:2]:
            assert abs(shown.one(f'[data-row="{number}"] .summary').rect["x"] - name.rect["x"]) < 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_as_bright_as_its_reader_wants(red, show, scheme):
    shown = show(red)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    shown.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    shown.picture(scheme)
    told = shown.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(told[:3]) < 300) == (scheme == "dark")


def test_a_narrow_page_needs_no_scrolling_sideways(red, show):
    shown = show(red)
    shown.browser.set_window_size(*NARROW)
    shown.picture("narrow")
    assert shown.run("document.documentElement.scrollWidth <= window.innerWidth")
    (number,) = numbers(red, lambda row: row.kind == "agent_message_chunk")
    assert shown.one(f'[data-row="{number}"] .lane').is_displayed()


# ── filters ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def switches(what, page):
    """The names that rows have, as they stand in the page."""
    return list(dict.fromkeys(visible(getattr(row, what)) for row in page.rows))


@pytest.mark.parametrize("what", ["lane", "kind"])
def test_a_switch_hides_what_it_names_and_shows_it_again(red, show, what):
    shown = show(red)
    boxes = {box.get_attribute(f"data-{what}"): box for box in shown.find(f"input[data-{what}]")}
    for name in switches(what, red):
        boxes[name].click()
        left = numbers(red, lambda row, name=name: visible(getattr(row, what)) != name)
        assert shown.visible() == left
        assert shown.told() == f"{len(left)} of {len(red.rows)} rows"
        boxes[name].click()
    assert len(shown.visible()) == len(red.rows)


def test_filters_add_up(red, show):
    shown = show(red)
    shown.one("#differing").click()
    assert shown.visible() == numbers(red, lambda row: row.differs)
    shown.one(f'input[data-lane="{AGENT}"]').click()
    assert shown.visible() == numbers(red, lambda row: row.differs and row.lane != AGENT)
    shown.one('input[data-kind="call"]').click()
    assert shown.visible() == numbers(red, lambda row: row.differs and row.lane != AGENT and row.kind != "call")
    shown.one('input[data-kind="file"]').click()
    shown.one("#search").send_keys("nothing says this")
    assert shown.visible() == []
    assert shown.one("#nothing").is_displayed()
    shown.one("#all").click()
    assert shown.visible() == numbers(red, lambda _: True)
    assert not shown.one("#nothing").is_displayed()


@pytest.mark.parametrize("needle", ["HELLO", "sessionUpdate", "usage_update", "onerror", "\\u202e", "temperature", "]"])
def test_a_search_looks_through_all_that_rows_hold(red, show, needle):
    shown = show(red)
    shown.one("#search").send_keys(needle)
    wanted = numbers(red, lambda row: needle.lower() in row.text.lower())
    assert wanted and len(wanted) < len(red.rows)
    assert shown.visible() == wanted
    shown.one("#search").send_keys(Keys.ESCAPE)
    assert len(shown.visible()) == len(red.rows)


# ── opening rows, keys ──────────────────────────────────────────────────────────────────────────────────────────────


def test_every_row_with_details_opens_and_closes(red, show):
    shown = show(red)
    assert shown.find(".details") == []
    for number, row in enumerate(red.rows):
        if not row.details:
            assert shown.find(f'[data-row="{number}"] button') == []
            continue
        button = shown.one(f'[data-row="{number}"] .summary')
        shown.run("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        box = shown.one(f'[data-row="{number}"] .details')
        told = shown.run("arguments[0].textContent", box)
        assert box.is_displayed()
        assert all(detail.heading in told for detail in row.details)
        assert all(line.text in told for detail in row.details for line in detail.lines)
        assert button.get_attribute("aria-expanded") == "true"
        button.click()
        assert not box.is_displayed()
        assert button.get_attribute("aria-expanded") == "false"


def test_what_changed_is_marked_in_the_details(red, show):
    shown = show(red)
    (number,) = numbers(red, lambda row: row.kind == "call")
    shown.run(f"document.querySelector('[data-row=\"{number}\"] .summary').click()")
    shown.run("document.querySelector('.details').scrollIntoView({block: 'center'})")
    shown.picture("opened")
    assert [line.text.strip() for line in shown.find(".details .gone")] == ['− "temperature": 0.5,']


def test_a_person_without_a_mouse_gets_everywhere(red, show):
    shown = show(red)
    differing = numbers(red, lambda row: row.differs)
    shown.press("n")
    assert shown.focused() == differing[0]
    shown.press("n")
    assert shown.focused() == differing[1]
    shown.press("p")
    assert shown.focused() == differing[0]
    shown.press("p")
    assert shown.focused() == differing[-1], "from the first to the last"
    shown.press("k")
    assert shown.focused() == differing[-1] - 1
    shown.press("j")
    shown.press(Keys.ENTER)
    assert shown.one(f'[data-row="{differing[-1]}"] .details').is_displayed()
    shown.press("/")
    shown.press("n")
    assert shown.one("#search").get_attribute("value") == "n", "in a search a letter is a letter"


# ── what is shown runs nothing ──────────────────────────────────────────────────────────────────────────────────────


def test_hostile_content_is_text(red, show):
    shown = show(red)
    shown.run("document.querySelectorAll('.summary').forEach((button) => button.click())")
    assert shown.find("img, svg, a, iframe, object") == []
    assert len(shown.find("script")) == 2
    words = shown.run("document.body.textContent")
    for text in HOSTILE[:4]:
        assert text in words
    assert "\u202e" not in words and "\u2028" not in words
    assert shown.run("window.ran") is None


def test_even_a_forgotten_escape_would_run_nothing(chrome, red, tmp_path):
    """The policy alone: markup that would run anywhere else is put into a page that is otherwise our own."""
    markup = f"<script>{RAN}</script><img src='x' onerror='{RAN}'><svg onload='{RAN}'></svg>"
    html = page_html(red)
    shown = Shown(chrome, html.replace("<header>", f"<header>{markup}"), tmp_path / "page.html")
    assert shown.run("window.ran") is None
    refused = [line for line in shown.console() if "Content Security Policy" in line]
    assert len(refused) >= 3
    assert len(shown.visible()) == len(red.rows), "our own script does run"
    head, _, rest = html.partition('<meta http-equiv="Content-Security-Policy"')
    shown = Shown(
        chrome, (head + rest.partition(">")[2]).replace("<header>", f"<header>{markup}"), tmp_path / "page.html"
    )
    assert shown.run("window.ran") >= 2, "without the policy it does run"
    shown.console()


# ── large runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_ten_thousand_rows(show):
    """Rows far away are not laid out, details are made when they are asked for, and filters still say what they did."""
    rows = [
        Row(AGENT, f"kind {number % 7}", f"row {number}", details=(json_detail("frame", {"number": number}),))
        for number in range(9_990)
    ]
    held = fresh({"number": -1}, 0)
    rows += [Row(FILES, "log", "late", -1, "added", "x:1", held.differences, (held.detail("event"),))] * 10
    page = Page("large", "", True, [], [], [], [], [Lane(AGENT, "agent"), Lane(FILES, "files")], rows)
    shown = show(page)
    assert shown.told() == "10000 of 10000 rows"
    assert shown.find(".details") == []
    shown.one('input[data-kind="kind 3"]').click()
    assert shown.told() == f"{len(numbers(page, lambda row: row.kind != 'kind 3'))} of 10000 rows"
    shown.one("#search").send_keys('"number": 12')
    left = numbers(page, lambda row: '"number": 12' in row.text and row.kind != "kind 3")
    assert shown.told() == f"{len(left)} of 10000 rows"
    shown.one("#search").send_keys(Keys.ESCAPE)
    shown.one("#next").click()
    assert shown.focused() == 9_990
