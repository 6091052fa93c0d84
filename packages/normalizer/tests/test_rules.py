"""One row of before and after for every rule; the README tells of the same rules."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from normalizer import (
    IDENTITIES,
    RULES,
    Change,
    Context,
    Declared,
    Document,
    Json,
    Kind,
    identities_table,
    looks_random,
    normalize,
    normalize_text,
    rules_table,
)

UUID = "0b5c1f6e-6a0f-4c1e-9f2b-0a1b2c3d4e5f"
DECLARED = (
    Declared(path="/params/update/used", token="usedTokens", reason="counts cwd"),
    Declared(key="buildTag", token="build", reason="differs per build", pattern=r"b\d+"),
    Declared(pattern=r"seed (\d+)", token="seed", reason="drawn per run"),
    Declared(key="nonce", token="requestId", reason="drawn per request"),
)
CONTEXT = Context(
    cwd=("/run/x1/work",),
    ports=(43210,),
    dates=(date(2026, 11, 30),),
    agent_version="1.51.0",
    declared=DECLARED,
)

# rule, kind of document, before, after
ROWS: list[tuple[str, Kind, Json, Json]] = [
    ("declared", "stdout", {"params": {"update": {"used": 10}}}, {"params": {"update": {"used": "{{usedTokens}}"}}}),
    ("declared", "stdout", {"params": {"used": 10}}, {"params": {"used": 10}}),
    ("declared", "session", {"a": [{"buildTag": "b12"}]}, {"a": [{"buildTag": "{{build}}"}]}),
    ("declared", "session", {"buildTag": "release"}, {"buildTag": "release"}),
    ("declared", "stdout", {"t": "seed 12, seed x"}, {"t": "seed {{seed}}, seed x"}),
    ("declared", "stdout", {"a": {"nonce": "zz"}, "b": "zz"}, {"a": {"nonce": "{{requestId:1}}"}, "b": "zz"}),
    ("rpcId", "stdout", {"id": 0, "method": "m"}, {"id": "{{rpcId:1}}", "method": "m"}),
    ("rpcId", "stdout", {"id": "srv_1", "method": "m"}, {"id": "{{rpcId:1}}", "method": "m"}),
    ("rpcId", "stdout", {"id": 3, "result": {}}, {"id": 3, "result": {}}),
    ("rpcId", "client", {"id": 0, "result": {}}, {"id": "{{rpcId:1}}", "result": {}}),
    ("rpcId", "client", {"id": 0, "method": "m"}, {"id": 0, "method": "m"}),
    ("paths", "stdout", {"/run/x1/work/a": "/run/x1/work"}, {"{{cwd}}/a": "{{cwd}}"}),
    ("identity", "stdout", {"sessionId": "abcdef-1"}, {"sessionId": "{{sessionId:1}}"}),
    (
        "identity",
        "stdout",
        {"a": {"call_id": "call_7"}, "t": "call_7."},
        {"a": {"call_id": "{{toolCallId:1}}"}, "t": "{{toolCallId:1}}."},
    ),
    ("identity", "stdout", {"turnId": "7", "t": "7"}, {"turnId": "{{turnId:1}}", "t": "7"}),
    (
        "identity",
        "stdout",
        {"turnId": 0, "threadId": "", "messageId": -1},
        {"turnId": 0, "threadId": "", "messageId": -1},
    ),
    (
        "identity",
        "stdout",
        {"modeId": UUID[:8], "modelId": "a1b2c3d4e5"},
        {"modeId": UUID[:8], "modelId": "a1b2c3d4e5"},
    ),
    ("identity", "stdout", {"models": [{"id": "a1b2c3d4e5f6"}]}, {"models": [{"id": "a1b2c3d4e5f6"}]}),
    ("identity", "stdout", {"item": {"id": "a1b2c3d4e5f6"}}, {"item": {"id": "{{id:1}}"}}),
    ("identity", "stdout", {"item": {"id": "default"}}, {"item": {"id": "default"}}),
    ("identity", "session", {"type": "session", "id": "main-1"}, {"type": "session", "id": "{{sessionId:1}}"}),
    (
        "identity",
        "requests",
        {"c": {"type": "tool-call", "id": "call_1"}},
        {"c": {"type": "tool-call", "id": "{{toolCallId:1}}"}},
    ),
    ("identity", "requests", {"user": '{"session_id": "zq-12345"}'}, {"user": '{"session_id": "{{sessionId:1}}"}'}),
    ("uuid", "stdout", {"t": f"see {UUID.upper()}."}, {"t": "see {{uuid:1}}."}),
    ("uuid", "stdout", {"toolCallId": f"{UUID}/call_0002"}, {"toolCallId": "{{uuid:1}}/call_0002"}),
    ("uuid", "stdout", {"t": "00000000-0000-0000-0000-000000000000"}, {"t": "00000000-0000-0000-0000-000000000000"}),
    ("port", "stdout", {"t": "http://127.0.0.1:43210/v1 43210"}, {"t": "http://127.0.0.1:{{port:1}}/v1 43210"}),
    ("port", "stdout", {"port": 43210, "n": 43210}, {"port": "{{port:1}}", "n": 43210}),
    ("port", "stdout", {"t": "[::1]:43210 port 43210, a:443"}, {"t": "[::1]:{{port:1}} port {{port:1}}, a:443"}),
    ("weekday", "text", "now: 2026-11-30 19:15:14 (Monday)", "now: {{eventTime}} ({{weekday}})"),
    ("weekday", "text", "Monday 2026-11-30", "{{weekday}} {{date}}"),
    ("eventTime", "stdout", {"updatedAt": "2026-11-30T19:15:14.32+00:00"}, {"updatedAt": "{{eventTime}}"}),
    (
        "eventTime",
        "stdout",
        {"started_at_ms": 1796066569186, "time": 30},
        {"started_at_ms": "{{eventTime}}", "time": 30},
    ),
    (
        "eventTime",
        "stdout",
        {"created": 1796066569.5, "size": 1796066569},
        {"created": "{{eventTime}}", "size": 1796066569},
    ),
    ("date", "requests", {"t": "Today is Monday, November 30, 2026."}, {"t": "Today is {{dateDayWords}}."}),
    ("date", "requests", {"t": "2026-11-30, 2026-11-29"}, {"t": "{{date}}, 2026-11-29"}),
    (
        "durationMs",
        "stdout",
        {"durationMs": 12, "elapsed": 0.5},
        {"durationMs": "{{durationMs}}", "elapsed": "{{durationMs}}"},
    ),
    (
        "durationMs",
        "stdout",
        {"duration": {"secs": 0, "nanos": 5}},
        {"duration": {"secs": 0, "nanos": "{{durationMs}}"}},
    ),
    (
        "durationMs",
        "stdout",
        {"rawInput": {"duration": 5}, "timeoutMs": 9},
        {"rawInput": {"duration": 5}, "timeoutMs": 9},
    ),
    ("durationMs", "stdout", {"t": "Wall time: 0.51 seconds"}, {"t": "Wall time: {{durationMs}} seconds"}),
    ("durationMs", "stdout", {"t": "2 passed in 0.03s; waits 30s"}, {"t": "2 passed in {{durationMs}}s; waits 30s"}),
    ("pid", "stdout", {"process_id": "89732", "n": "89732"}, {"process_id": "{{pid:1}}", "n": "89732"}),
    ("pid", "stdout", {"t": "Process Group PGID: 451"}, {"t": "Process Group PGID: {{pid:1}}"}),
    ("labelledId", "stdout", {"t": "Chunk ID: 3fa2b1\nx"}, {"t": "Chunk ID: {{id:1}}\nx"}),
    ("agentVersion", "stdout", {"agentInfo": {"version": "1.51.0"}}, {"agentInfo": {"version": "{{agentVersion}}"}}),
    ("agentVersion", "stdout", {"t": "kimi/1.51.0 1.51.01"}, {"t": "kimi/{{agentVersion}} 1.51.01"}),
    ("literal", "stdout", {"t": "{{cwd}} in a template"}, {"t": "{{{{cwd}} in a template"}),
]


BESIDE = {"weekday": {"eventTime", "date"}}
"""What a rule cannot be seen without: a weekday is one only beside a date."""


def check_rule(kind: Kind, before: Json, after: Json) -> list[Change]:
    changes: list[Change] = []
    normal = normalize([Document("x", kind, [before])], CONTEXT, trace=changes.append)
    assert normal[0].values == [after]
    assert normalize(normal, CONTEXT, stored=True) == normal
    return changes


@pytest.mark.parametrize(("rule", "kind", "before", "after"), ROWS)
def test_rule(rule: str, kind: Kind, before: Json, after: Json) -> None:
    changes = check_rule(kind, before, after)
    applied = {change.rule for change in changes} - BESIDE.get(rule, set())
    assert applied == ({rule} if before != after else set())


def test_every_rule_has_a_row_that_needs_it() -> None:
    assert {rule for rule, _, before, after in ROWS if before != after} == {rule.name for rule in RULES}


def test_the_readme_holds_the_tables_of_the_code() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    assert rules_table() in readme, f"mend: put this into README.md\n{rules_table()}"
    assert identities_table() in readme, f"mend: put this into README.md\n{identities_table()}"


def test_a_kind_comes_from_precedence_not_from_where_it_was_first_seen() -> None:
    frames = [{"params": {"messageId": "a1b2c3d4"}}, {"params": {"sessionId": "a1b2c3d4", "threadId": "a1b2c3d4"}}]
    for order in (frames, frames[::-1]):
        text = str(normalize([Document("x", "stdout", order)], Context())[0].values)
        assert text.count("{{sessionId:1}}") == 3
    assert [kind for kind, _, _ in IDENTITIES][:3] == ["sessionId", "toolCallId", "messageId"]


def test_a_composite_is_its_parts() -> None:
    frames = [
        {"params": {"toolCallId": "run_shell_command__fc_0002"}},
        {"params": {"toolCallId": f"{UUID}-7f3a9c21d0"}},
        {"params": {"callId": "fc_0002", "sessionId": UUID}},
    ]
    out = normalize([Document("x", "stdout", frames)], Context())[0].values
    assert [frame["params"] for frame in out] == [
        {"toolCallId": "run_shell_command__{{toolCallId:1}}"},
        {"toolCallId": "{{sessionId:1}}-{{toolCallId:2}}"},
        {"callId": "{{toolCallId:1}}", "sessionId": "{{sessionId:1}}"},
    ]


@pytest.mark.parametrize("spelling", [UUID, UUID.upper(), UUID.replace("-", ""), UUID.replace("-", "_")])
def test_a_learned_value_is_known_in_every_spelling(spelling: str) -> None:
    frames = [{"params": {"sessionId": UUID}}, {"params": {"t": f"log_{spelling}.jsonl"}}]
    assert normalize([Document("x", "stdout", frames)], Context())[0].values[1] == {
        "params": {"t": "log_{{sessionId:1}}.jsonl"}
    }


def test_known_values_are_numbered_first_and_stored_numbers_are_not_given_again() -> None:
    frames = [{"params": {"callId": "call_b"}}, {"params": {"callId": "call_a"}}]
    known = [("toolCallId", "call_a"), ("toolCallId", "call_b")]
    out = normalize([Document("x", "stdout", frames)], Context(), known=known)[0].values
    assert [frame["params"]["callId"] for frame in out] == ["{{toolCallId:2}}", "{{toolCallId:1}}"]
    mixed = [*out, {"params": {"callId": "call_new"}}]
    again = normalize([Document("x", "stdout", mixed)], Context(), stored=True)[0].values
    assert again == [*out, {"params": {"callId": "{{toolCallId:3}}"}}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"cwd": "/run/x1/work",  "n": 1}', '{"cwd": "{{cwd}}",  "n": 1}'),
        ('[\n  {"durationMs": 5}\n]', '[\n  {"durationMs": "{{durationMs}}"}\n]'),
        (
            '{"a":"{\\"durationMs\\":5,\\"p\\":\\"/run/x1/work\\"}"}',
            '{"a":"{\\"durationMs\\":\\"{{durationMs}}\\",\\"p\\":\\"{{cwd}}\\"}"}',
        ),
        (
            '{"p": "\\u00e9\\n/run/x1/work\\ud83d\\ude00/run/x1/work"}',
            '{"p": "\\u00e9\\n{{cwd}}\\ud83d\\ude00{{cwd}}"}',
        ),
        ('{"a": 1, "a": "/run/x1/work"}', '{"a": 1, "a": "{{cwd}}"}'),
        ('{"a": "/run/x1/work", ', '{"a": "{{cwd}}", '),
        ("[1, 2] [/run/x1/work]", "[1, 2] [{{cwd}}]"),
    ],
)
def test_json_in_a_string_keeps_its_form(before: str, after: str) -> None:
    assert normalize_text(before, CONTEXT) == after
    assert normalize_text(after, CONTEXT, stored=True) == after


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "nothing to find"),
        ({"key": "x", "token": "a b"}, "is no name"),
        ({"key": "x", "reason": " "}, "no reason"),
        ({"pattern": "("}, "pattern"),
    ],
)
def test_a_declaration_that_says_nothing_is_refused(fields: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        Declared(**{"token": "x", "reason": "y", **fields})
    assert str(caught.value).splitlines()[-1].startswith("mend: ")


def test_crlf_becomes_lf_in_text_files_only() -> None:
    documents = [Document("a", "text", ["a\r\nb"]), Document("b", "stdout", [{"t": "a\r\nb"}])]
    assert [document.values[0] for document in normalize(documents, Context())] == ["a\nb", {"t": "a\r\nb"}]


@given(st.uuids(), st.integers(min_value=12, max_value=64), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_usual_shapes_of_ids_are_told_by_shape_and_not_by_how_random_a_draw_looks(value, length, random):
    digits = "".join(random.choice("0123456789abcdef") for _ in range(length))

    assert looks_random(str(value))
    assert looks_random(f"msg_{value.hex}")
    assert looks_random(digits)


@pytest.mark.parametrize(
    "value", ["2039aaae-7cdd-4942-9323-106363045862", "11111111-2222-4333-8444-555555555555", "a" * 32]
)
def test_an_id_that_does_not_look_random_is_one_all_the_same(value):
    (document,) = normalize([Document("x", "session", [{"type": "e", "data": {"id": value}}])], Context())
    assert document.values[0]["data"]["id"] == "{{id:1}}"
