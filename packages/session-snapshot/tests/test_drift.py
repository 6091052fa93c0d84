"""What kind a change is, and what one change across many scenarios looks like."""

import json

import pytest
from session_snapshot.changes.drift import KINDS, Change, changes_of, compared, counted, group_lines
from session_snapshot.hunks import Hunk
from session_snapshot.rows import name_of


def lines(*values: object) -> str:
    return "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)


def update(kind: str, **more: object) -> dict:
    return {"method": "session/update", "params": {"update": {"sessionUpdate": kind} | more}}


def tool(number: int, **more: object) -> dict:
    return update("tool_call", toolCallId=f"{{{{toolCallId:{number}}}}}", **more)


def text(said: str) -> dict:
    return update("agent_message_chunk", content={"type": "text", "text": said})


def asked(call: int, *messages: str, **more: object) -> dict:
    append = [{"role": "user", "content": [{"type": "text", "text": message}]} for message in messages]
    return {"call": call, "lane": 0, "parent": None, "header": "default", "params": {}, "append": append} | more


START, END, PLAN = {"type": "turn/start", "data": {}}, {"type": "turn/end", "data": {}}, update("plan", entries=[])
CHUNK = {"type": "assistant/chunk", "data": {"call": 0, "chunk": {"type": "text-delta", "index": 0, "text": "hi"}}}
ADDED_PLAN, TITLE = ("additive", "event 'plan' added"), "event 'tool_call': /params/update/title changed"
SAID = "event 'agent_message_chunk': /params/update/content/text changed"

ROWS = [
    # rows: one that came is one, wherever; nothing after it is touched
    ([START], [START], []),
    ([START, END], [START, PLAN, END], [ADDED_PLAN]),
    ([START, tool(1), END], [START, PLAN, tool(1), END], [ADDED_PLAN]),
    ([START, tool(1, title="a b c"), END], [START, PLAN, tool(1, title="a b d"), END],
     [ADDED_PLAN, ("wording", TITLE)]),
    ([text("one"), text("two"), text("three")], [text("one"), text("new"), text("two"), text("three")],
     [("additive", "event 'agent_message_chunk' added")]),
    ([PLAN, PLAN], [PLAN, PLAN, PLAN], [ADDED_PLAN]),
    ([START, PLAN, END], [START, END], [("semantic", "event 'plan' removed")]),
    ([START, PLAN, END], [START, update("usage", entries=[]), END],
     [("semantic", "event 'plan' removed"), ("additive", "event 'usage' added")]),
    ([PLAN, PLAN, PLAN], [PLAN], [("semantic", "event 'plan' removed")] * 2),
    ([], [START], [("additive", "event 'turn/start' added")]),
    # a row that asks or answers is more than an event
    ([START], [START, {"id": 1, "method": "session/request_permission", "params": {}}],
     [("semantic", "event 'session/request_permission' added")]),
    ([{"id": 1, "result": 1}], [{"id": 1, "result": 1}, {"id": 2, "result": 1}], [("semantic", "response added")]),
    # and an event that tells of a failure is no mere addition
    ([START], [START, update("tool_call_update", toolCallId="c", status="failed")],
     [("semantic", "event 'tool_call_update' added")]),
    ([START], [START, {"type": "tool/result", "data": {"isError": True}}],
     [("semantic", "event 'tool/result' added")]),
    # the inserted row renumbers what follows
    ([tool(1), tool(2), update("x", toolCallId="{{toolCallId:2}}")],
     [tool(1), PLAN | {"n": "{{toolCallId:2}}"}, tool(3), update("x", toolCallId="{{toolCallId:3}}")],
     [ADDED_PLAN, ("identity", "event 'tool_call': {{toolCallId}} renumbered"),
      ("identity", "event 'x': {{toolCallId}} renumbered")]),
    ([tool(1, title="a"), tool(2, title="b")], [tool(1, title="a"), tool(2, title="new"), tool(3, title="b")],
     [("additive", "event 'tool_call' added"), ("identity", "event 'tool_call': {{toolCallId}} renumbered")]),
    # moved
    ([START, END], [END, START], [("order", "event 'turn/start' moved")]),
    ([START, tool(1), tool(2), END], [tool(1), tool(2), END, START], [("order", "event 'turn/start' moved")]),
    ([tool(1, title="a"), PLAN], [PLAN, tool(2, title="a")],
     [("order", "event 'tool_call' moved"), ("identity", "event 'tool_call': {{toolCallId}} renumbered")]),
    ([text("one"), text("two")], [text("two"), text("one")], [("order", "event 'agent_message_chunk' moved")]),
    ([{"id": 1, "result": {}}, PLAN, {"id": 2, "result": {}}], [PLAN, {"id": 1, "result": {}}, {"id": 2, "result": {}}],
     [("order", "event 'plan' moved")]),
]  # fmt: skip


def check_changes(surface: str, before: list, after: list, changes: list[tuple[str, str]]) -> None:
    name = {"stdout": "stdout.golden.jsonl", "session": "session.jsonl", "requests": "requests.golden.jsonl"}[surface]
    found = changes_of(surface, compared(surface, name, lines(*before), lines(*after)))
    assert [(change.kind, change.phrase) for change in found] == changes


@pytest.mark.parametrize(("before", "after", "changes"), ROWS)
def test_rows(before: list, after: list, changes: list[tuple[str, str]]) -> None:
    check_changes("stdout", before, after, changes)


@pytest.mark.parametrize(
    ("path", "before", "after", "kind"),
    [
        # clocks: by what the field is called
        ("time", 1, 2, "clock"),
        ("data/durationMs", 1, 9, "clock"),
        ("data/createdAt", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "clock"),
        ("data/time", True, False, "semantic"),
        ("rawInput/time", 5, 6, "semantic"),
        ("timeout", 5, 6, "semantic"),
        # identity: nothing but tokens
        ("id", "{{x:1}}", "{{x:2}}", "identity"),
        ("path", "{{cwd}}/a", "{{home}}/a", "identity"),
        ("path", "{{cwd}}/a", "{{cwd}}/b", "semantic"),
        ("text", "see {{x:1}} and {{x:2}}", "see {{x:2}} and {{x:3}}", "identity"),
        ("id", "{{x:1}}", "abc-def", "semantic"),
        ("text", "{{{{x:1}} is a literal", "{{{{x:2}} is a literal", "semantic"),
        ("rawInput/path", "{{x:1}}", "{{x:2}}", "identity"),
        ("rawInput/path", "{{cwd}}/a", "{{home}}/a", "semantic"),
        # wording: words for people, most of them the same
        ("text", "read the whole file now", "read the entire file now", "wording"),
        ("update/title", "Run the tests", "Run all the tests", "wording"),
        ("text", "PONG", "PONG.", "wording"),
        ("text", "yes", "no", "semantic"),
        ("text", "it is so: true for all of them", "it is so: false for all of them", "semantic"),
        ("text", "used 3 of the files", "used 4 of the files", "semantic"),
        ("text", "the exit code is 1", "the exit code is -1", "semantic"),
        ("text", "first 2 then 3 of them", "first 3 then 2 of them", "semantic"),
        ("text", "call {{x:1}} has now ended", "call {{x:2}} has ended", "wording"),
        ("text", "completely different", "nothing alike", "semantic"),
        ("content", ["a b c d"], ["a b c e"], "wording"),
        # a field that is no prose is never reworded
        ("stopReason", "end turn", "end turn now", "semantic"),
        ("arguments", '{"command":"rm -r the old build"}', '{"command":"rm -r the new build"}', "semantic"),
        ("rawInput/text", "write all of this down", "write most of this down", "semantic"),
        ("rawInput/deep/0/title", "write all of this down", "write most of this down", "semantic"),
        ("name", "read.file", "read/file", "semantic"),
        # values
        ("n", 1, 2, "semantic"),
        ("n", 1, 1.0, "semantic"),
        ("n", 1, True, "semantic"),
        ("n", False, True, "semantic"),
        ("n", None, 0, "semantic"),
        ("text", "a b c", None, "semantic"),
        ("text", "a b c", {"en": "a b c"}, "semantic"),
    ],
)  # fmt: skip
def test_fields(path: str, before: object, after: object, kind: str) -> None:
    def row(value: object) -> dict:
        for part in reversed(path.split("/")):
            value = [value] if part == "0" else {part: value}
        return {"type": "a", "in": value}

    found = changes_of("stdout", compared("stdout", "stdout.golden.jsonl", lines(row(before)), lines(row(after))))
    assert [change.kind for change in found] == [kind]


@pytest.mark.parametrize(
    ("surface", "before", "after", "changes"),
    [
        ("stdout", [{"type": "a"}], [{"type": "a", "m": 2}], [("semantic", "event 'a': /m added")]),
        ("stdout", [{"type": "a", "m": 2}], [{"type": "a"}], [("semantic", "event 'a': /m removed")]),
        ("stdout", [{"type": "a", "m": 2}], [{"m": 2, "type": "a"}], [("order", "event 'a': the same in other bytes")]),
        ("stdout", [text("Never do it now")], [text("Do it now")],
         [("wording", f"{SAID} (a negation came or went: never)")]),
        ("stdout", [text("I do it gladly")], [text("I don't do it gladly")],
         [("wording", f"{SAID} (a negation came or went: t)")]),
        ("stdout", [update("x", path="{{cwd}}/a")], [update("x", path="{{home}}/a")],
         [("identity", "event 'x': {{cwd}} became {{home}}")]),
        # requests: which call it is does not keep equal changes apart; the order of members is no content
        ("requests", [asked(0, "hi"), asked(1, "you")], [asked(0, "hi"), asked(1, "you", params={"temperature": 1})],
         [("semantic", "request: /params/temperature added")]),
        ("requests", [asked(0, "read all of it")], [asked(0, "read most of it")],
         [("wording", "request: /append/*/content/*/text changed")]),
        ("requests", [asked(0, "a")], [asked(0, "a", "b")], [("semantic", "request: /append/* added")]),
        ("requests", [{"call": 0, "params": {"a": 1, "b": 2}, "append": []}],
         [{"params": {"b": 2, "a": 1}, "call": 0, "append": []}], []),
        # a history told from another place on is one difference
        ("requests", [asked(0, "a", "b"), asked(1, "c", parent=0)],
         [asked(0, "a", "b"), asked(1, "d", parent=0, keep=1, params={"n": 1})],
         [("semantic", "request changed"), ("semantic", "request: /params/n added")]),
        # what the model said
        ("session", [START, CHUNK, CHUNK, END], [START, CHUNK, PLAN, CHUNK, END], [ADDED_PLAN]),
        ("session", [START, CHUNK, END], [CHUNK, START, END], [("order", "event 'turn/start' moved")]),
    ],
)  # fmt: skip
def test_phrases(surface: str, before: list, after: list, changes: list[tuple[str, str]]) -> None:
    check_changes(surface, before, after, changes)


def test_whole_files() -> None:
    (come,) = changes_of("session", compared("session", "session.1.jsonl", None, lines(START, END)))
    (gone,) = changes_of("session", compared("session", "session.1.jsonl", lines(START), None))
    assert (come.kind, come.phrase) == ("additive", "the file session.1.jsonl added")
    assert (gone.kind, gone.phrase, gone.hunk.model) == ("semantic", "the file session.1.jsonl removed", False)
    (gone,) = changes_of("session", compared("session", "session.jsonl", lines(START), None))
    assert gone.hunk.model, "the primary log is the replay source"


def test_pins_are_read_by_what_they_mean() -> None:
    system = compared("requests", "header.system.md", "Never lie to\nthe user.\n", "Lie to\nthe user.\n")
    assert [(change.kind, change.phrase) for change in changes_of("requests", system)] == [
        ("wording", "the system prompt changed (a negation came or went: never)")
    ]
    old = [{"name": "a", "description": "Read all of it."}, {"name": "b", "inputSchema": {"type": "object"}}]
    new = [{"name": "a", "description": "Read most of it."}, {"name": "b", "inputSchema": {"type": "array"}}, {}]
    tools = compared("requests", "header.tools.json", json.dumps(old, indent=2), json.dumps(new, indent=2))
    assert [(change.kind, change.phrase) for change in changes_of("requests", tools)] == [
        ("wording", "the tools: /*/description changed"),
        ("semantic", "the tools: /*/inputSchema/type changed"),
        ("semantic", "the tools: /* added"),
    ]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"type": "turn/end"}, "event 'turn/end'"),
        (update("plan"), "event 'plan'"),
        ({"method": "session/request_permission", "id": 1, "params": {}}, "event 'session/request_permission'"),
        ({"method": "odd", "params": [1]}, "event 'odd'"),
        ({"id": 1, "result": None}, "response"),
        ({"call": 3}, "call 3"),
        ([1], "row"),
    ],
)
def test_names(row: object, name: str) -> None:
    assert name_of(row) == name


def change(surface: str, kind: str, phrase: str, expected: object = None, actual: object = None) -> Change:
    return Change(surface, kind, phrase, "x", 0, Hunk("changed", "row", "/a", expected, actual, 1, 1))


def test_groups_the_most_shared_first_each_scenario_once() -> None:
    plan = change("stdout", "additive", "event 'plan' added")
    text = change("session", "wording", "/text changed")
    assert group_lines({"s/a": [text], "s/b": [plan, plan], "s/c": [plan]}) == [
        "additive: stdout: event 'plan' added, in 2 scenarios: s/b, s/c",
        "wording: session: /text changed, in s/a",
    ]
    assert counted([text, plan, plan]) == "2 additive, 1 wording"


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        ("wording", ("a", "b"), ("a", "b"), True),
        ("wording", ("a {{x:1}}", "b"), ("a {{x:2}}", "b"), True),
        ("wording", ("a", "b"), ("a", "c"), False),
        ("wording", ("a", "b"), ("c", "b"), False),
        ("identity", ("{{x:1}}", "{{x:2}}"), ("{{x:2}}", "{{x:3}}"), True),
        ("semantic", (1, 2), (1, 3), False),
    ],
)
def test_twins_are_the_same_change_of_the_same_values(kind: str, one: tuple, other: tuple, same: bool) -> None:
    assert (change("stdout", kind, "p", *one).twin == change("stdout", kind, "p", *other).twin) is same


def test_kinds_are_the_six_that_there_are() -> None:
    assert KINDS == ("clock", "identity", "order", "additive", "wording", "semantic")
