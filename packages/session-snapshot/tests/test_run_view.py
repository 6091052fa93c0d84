"""The command that shows a run, and the page that a red replay leaves: where it is, what is said, what is untouched."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

OWN = Path(__file__).parents[3] / "snapshots" / "session"


def shown(suite, code, *arguments, **variables):
    """The command's standard output and error."""
    done = suite.command("view", *arguments, **variables)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


PAGE = ".snapshot-actual/scripted/turn/view.html"


def test_a_page_is_written_and_its_path_printed(suite):
    before = suite.tree()
    out, err = shown(suite, 0, "turn")
    assert out == f"{PAGE}\n"
    assert err == "scripted/turn: green, 13 rows\n"
    assert "hello there world" in (suite.root / PAGE).read_text(encoding="utf-8")
    assert suite.tree() == before
    assert list((suite.root / "tmp").iterdir()) == []


def test_a_red_scenario_is_shown_too(suite):
    suite.edit("stdout.golden.jsonl", "there", "their")
    _, err = shown(suite, 0, "turn")
    assert err == "scripted/turn: red, 1 failure, 13 rows\n"


def test_several_scenarios_have_a_page_each(suite):
    suite.copy("other")
    out, _ = shown(suite, 0, "turn", "scripted/other")
    assert out.split() == [".snapshot-actual/scripted/other/view.html", PAGE]


def test_another_file_may_be_named(suite):
    out, _ = shown(suite, 0, "turn", "--output", "pages/my run.html")
    assert out == "pages/my run.html\n"
    assert (suite.root / "pages" / "my run.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no scenario is named\nmend: session-snapshot view NAME"),
        (("turm",), "no scenario is called 'turm'\nmend: the nearest are: turn"),
        (("turn", "-o", "snapshots/page.html"), "snapshots/page.html lies among the suites"),
        (("turn", "other", "-o", "page.html"), "--output is one file, and there are 2 scenarios"),
        (("turn", "-o", "a-file/page.html"), "a-file/page.html cannot be written: "),
    ],
)
def test_what_cannot_be_is_refused(suite, arguments, said):
    suite.copy("other")
    (suite.root / "a-file").write_text("")
    before = suite.tree()
    _, err = shown(suite, 2, *arguments)
    assert said in err
    assert suite.tree() == before


def test_another_dialect_may_be_spoken(suite):
    """By our own agent, which can."""
    own = suite.snapshots / "session"
    shutil.copytree(OWN / "text-turn", own / "text-turn")
    shutil.copy(OWN / "agent.toml", own)
    _, err = shown(suite, 0, "text-turn", "--dialect", "anthropic-messages")
    assert err.startswith("session/text-turn: green")
    page = (suite.root / ".snapshot-actual/session/text-turn/view.html").read_text(encoding="utf-8")
    assert "requests are compared without" in page
    assert '\\"dialect\\": \\"anthropic-messages\\"' in page
    _, err = shown(suite, 2, "text-turn", "--dialect", "morse")
    assert "morse" in err


def test_committed_files_are_shown_without_running_anything(suite):
    mark = suite.root / "started"
    suite.plan(start=[["write", str(mark), "x"]])
    _, err = shown(suite, 0, "turn", "--committed")
    assert err == "scripted/turn: not run, these are the committed files, 10 rows\n"
    assert not mark.exists()
    shown(suite, 0, "turn")
    assert mark.exists(), "without the flag the agent is run"


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("session.jsonl", '{"type":"llm/call"', '{"type":nonsense', "session.jsonl:2"),
        ("scenario.toml", 'answer_contains = ["hello"]', 'answer_contains = ["bye"]', "breaks its own [expect]"),
        ("scenario.toml", "[header]", 'platforms = ["other"]\n[header]'.replace("other", "NOT_HERE"), "runs on"),
    ],
)
def test_what_cannot_be_replayed_is_shown_as_it_is_committed(suite, name, old, new, why):
    elsewhere = "win32" if sys.platform != "win32" else "linux"
    suite.edit(name, old, new.replace("NOT_HERE", elsewhere))
    _, err = shown(suite, 0, "turn")
    assert "not run (" in err and why in err
    assert "not run<" in (suite.root / PAGE).read_text(encoding="utf-8")


def test_a_scenario_that_cannot_be_read_has_no_page(suite):
    suite.write("scenario.toml", "nonsense")
    _, err = shown(suite, 2, "turn")
    assert "snapshots/scripted/turn/scenario.toml: not TOML" in err
    assert not (suite.root / PAGE).exists()


def test_a_page_is_opened_by_its_address(suite):
    """The browser here is a command that tells what it was given."""
    browser = suite.root / "browser.py"
    told = suite.root / "told"
    browser.write_text(f"import pathlib, sys\npathlib.Path({str(told)!r}).write_text(sys.argv[1])\n")
    shown(suite, 0, "turn", "--open", BROWSER=f"{sys.executable} {browser} %s")
    assert told.read_text() == (suite.root / PAGE).resolve().as_uri()


# ── beside the actual files ─────────────────────────────────────────────────────────────────────────────────────────


def replayed(suite, code, **variables):
    done = suite.command("replay", "-n", "0", **variables)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("variables", [{}, {"CI": "true"}])
def test_a_red_replay_leaves_its_page_and_names_it(suite, variables):
    suite.edit("stdout.golden.jsonl", "there", "their")
    assert f"view:         {PAGE}\n" in replayed(suite, 1, **variables)
    page = (suite.root / PAGE).read_text(encoding="utf-8")
    assert "hello <del>their</del> world" in page and "hello <ins>there</ins> world" in page
    suite.edit("stdout.golden.jsonl", "their", "there")
    replayed(suite, 0, **variables)
    assert not (suite.root / PAGE).exists(), "a green run takes away what a red one left"


def test_a_green_replay_does_not_even_read_what_makes_pages(suite):
    probe = "import sys, atexit; atexit.register(lambda: print('made of', [m for m in sys.modules if '.view' in m]))"
    (suite.root / "probe").mkdir()
    (suite.root / "probe" / "sitecustomize.py").write_text(probe)
    path = os.pathsep.join(filter(None, [str(suite.root / "probe"), os.environ.get("PYTHONPATH")]))
    assert "made of []" in replayed(suite, 0, PYTHONPATH=path)
    suite.edit("stdout.golden.jsonl", "there", "their")
    assert "session_snapshot.view.page" in replayed(suite, 1, PYTHONPATH=path)


def test_a_page_that_cannot_be_kept_hides_no_report(suite):
    """A file stands where the folder would."""
    suite.edit("stdout.golden.jsonl", "there", "their")
    (suite.root / ".snapshot-actual").write_text("")
    text = replayed(suite, 1)
    assert "view:         could not be made (Refused: " in text
    assert "- hello [-their-] world" in text


def test_a_page_says_how_an_agent_died(suite):
    suite.plan(session_prompt=[["hear"], ["stderr", "I give up <b>"], ["die"]])
    replayed(suite, 1)
    page = (suite.root / PAGE).read_text(encoding="utf-8")
    assert "I give up &lt;b&gt;" in page
    found = json.loads(page.split('id="details">', 1)[1].split("</script>", 1)[0])
    assert len(found) > 8
