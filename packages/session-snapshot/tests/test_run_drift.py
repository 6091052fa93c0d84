"""The drift matrix: an agent is recorded once, asks otherwise, and is held against the recording by the command.

Strict on meaning, blind to what varies: that is what a recording of requests is for. Each row is a change to what the
agent asks, the verdict of ``session-snapshot replay`` (what ``nox -s snapshot`` runs), and where a red one points.
"""

import datetime
import json
import re
from types import SimpleNamespace

import pytest
from msgspec import Struct
from session_snapshot import known

SYSTEM = "You are a test. Today is <date>, and you work in <cwd>."
TOOL = {
    "type": "function",
    "function": {
        "name": "touch",
        "description": "Touch a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
STRICT = TOOL | {"function": TOOL["function"] | {"strict": True}}
NUMBERED = json.loads(json.dumps(TOOL).replace("string", "number"))
LAST = [["say"], ["respond", {"stopReason": "end_turn"}]]


class Row(Struct):
    """A variant: what is heard before the prompt, the prompt's own text, and what is changed in the request.

    ``field`` is the place of the one difference, and ``shown`` what of it stands in the output; a green row has none.
    """

    changes: dict = {}
    before: list = []
    text: str | None = None
    field: str = ""
    shown: str = ""


MATRIX = {
    "same JSON": Row(),
    "key order": Row({"reversed": True}),
    "system prompt": Row({"system": SYSTEM.replace("a test", "a quiz")}, field="/system", shown="You are a [-test-]"),
    "tool schema": Row({"tools": [NUMBERED]}, field="/tools/0/inputSchema/properties/path/type", shown="- [-string-]"),
    "temperature": Row({"temperature": 0.7}, field="/0/params/temperature", shown="+ 0.7"),
    "a message more in the history": Row(before=[["hear", "Be brief."]], field="/0/append/0", shown="Be brief."),
    "date and cwd in the system prompt": Row(),
    "superset text": Row(text="Say hello. And more.", field="/0/append/0/content/0/text", shown="{+ And more.+}"),
}
"""What matches too loosely says green to the four in the middle, and what matches bytes says red to the date."""

FURTHER = {
    "a member of a tool that no type names": Row({"tools": [STRICT]}, field="/tools/0/strict", shown="+ true"),
}

DAYS = datetime.timedelta(days=40)


class Past(datetime.datetime):
    """A clock that is forty days slow."""

    @classmethod
    def now(cls, tz=None):
        return super().now(tz) - DAYS


def plan(suite, row: Row) -> None:
    """Have the agent do what a row says."""
    request = {"temperature": 0.2, "tools": [TOOL], "system": SYSTEM} | row.changes
    hear = ["hear"] if row.text is None else ["hear", row.text]
    suite.plan(session_prompt=[*row.before, hear, ["call", request], *LAST])


@pytest.fixture(scope="module")
def kept() -> dict[str, bytes]:
    """The recording, once it is made."""
    return {}


@pytest.fixture
def recorded(suite, kept: dict[str, bytes], monkeypatch: pytest.MonkeyPatch):
    """The turn as it was recorded forty days ago, in a folder that is no more."""
    if not kept:
        suite.agent(f'[env]\nTODAY = "{Past.now(datetime.UTC).date()}"\n')
        plan(suite, Row())
        suite.script("hello there world")
        with monkeypatch.context() as patch:
            patch.setattr(known, "datetime", SimpleNamespace(**vars(datetime) | {"datetime": Past}))
            suite.record()
        kept |= suite.tree()
    suite.restore(kept)
    system = (suite.turn / "header.system.md").read_text(encoding="utf-8")
    assert system == "You are a test. Today is {{date}}, and you work in {{cwd}}.\n"
    suite.agent()
    return suite


@pytest.mark.parametrize("variant", [*MATRIX, *FURTHER])
def test_drift(recorded, variant: str) -> None:
    row = (MATRIX | FURTHER)[variant]
    plan(recorded, row)
    done = recorded.command("replay", "turn")
    assert done.returncode == (1 if row.field else 0), done.stdout
    assert set(re.findall(r"--- (\w+): ", done.stdout)) == ({"requests"} if row.field else set())
    assert re.findall(r"^ *(?:changed|added|removed) (/\S*)$", done.stdout, re.MULTILINE) == [row.field] * bool(
        row.field
    )
    assert row.shown in done.stdout, done.stdout


def test_a_day_that_is_not_the_one_of_the_run_is_red(recorded) -> None:
    """The green rows are green because the day is known to be today, and not because nobody looks at days."""
    plan(recorded, Row())
    recorded.agent('[env]\nTODAY = "2001-02-03"\n')
    done = recorded.command("replay", "turn")
    assert done.returncode == 1
    assert "[-{{date}}-]" in done.stdout and "{+2001-02-03+}" in done.stdout


def test_the_matrix_is_the_one_of_the_comparison() -> None:
    verdicts = ["red" if row.field else "green" for row in MATRIX.values()]
    assert verdicts == ["green", "green", "red", "red", "red", "red", "green", "red"]
