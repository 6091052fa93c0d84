"""The form of a file."""

import pytest


@pytest.mark.parametrize(
    ("name", "edit", "findings"),
    [
        ("input.json", lambda data: b"\xef\xbb\xbf" + data, ["one/input.json:1 ENCODING"]),
        ("header.system.md", lambda data: data + b"caf\xe9\n", ["one/header.system.md:2 ENCODING"]),
        ("header.system.md", lambda data: data.replace(b"\n", b"\r\n"), ["one/header.system.md:1 NEWLINE"]),
        ("scenario.toml", lambda data: data.rstrip(b"\n"), ["one/scenario.toml:8 NEWLINE"]),
        ("stdout.golden.jsonl", lambda data: data.rstrip(b"\n"), ["one/stdout.golden.jsonl:2 NEWLINE"]),
        ("session.jsonl", lambda data: data.rstrip(b"\n"), ["one/session.jsonl:11 NEWLINE"]),
        (
            "stdout.golden.jsonl",
            lambda data: data.replace(b'"id":2', b'"id": 2'),
            ["one/stdout.golden.jsonl:2 CANONICAL"],
        ),
        ("stdout.golden.jsonl", lambda data: data.replace(b"\n", b"\n\n", 1), ["one/stdout.golden.jsonl:2 CANONICAL"]),
        ("stdout.golden.jsonl", lambda data: data + b"stray\n", ["one/stdout.golden.jsonl:3 CANONICAL"]),
        (
            "stdout.golden.jsonl",
            lambda data: data.replace(b"end_turn", b"\\u0065nd_turn"),
            ["one/stdout.golden.jsonl:2 CANONICAL"],
        ),
        (
            "stdout.golden.jsonl",
            lambda data: data.replace(b'"id":2', b'"id":1,"id":2'),
            ["one/stdout.golden.jsonl:2 CANONICAL"],
        ),
        (
            "requests.golden.jsonl",
            lambda data: data.replace(b":0,", b": 0,", 1),
            ["one/requests.golden.jsonl:1 CANONICAL"],
        ),
        ("session.jsonl", lambda data: data.replace(b'"turn":1', b'"turn": 1', 1), ["one/session.jsonl:2 CANONICAL"]),
        ("input.json", lambda data: b'{"steps": [], "steps": []}\n', ["one/input.json JSON"]),
    ],
)
def test_a_text_has_one_form(check_guard, build, name, edit, findings):
    path = f"s/one/{name}"
    check_guard({path: edit(build({})[path])}, findings)


def test_a_seed_may_hold_any_bytes(check_guard):
    check_guard({"s/one/workspace/dos.txt": b"\xff\xfe\r\nno newline"}, [])


def test_a_committed_log_has_no_clocks(check_guard):
    header = '{"type":"session","format":"session-snapshot","version":1,"id":"{{sessionId:2}}"}\n'
    clocked = header + '{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}\n'
    check_guard({"s/one/session.1.jsonl": clocked}, ["one/session.1.jsonl:2 CANONICAL"])


def test_runs_of_deltas_are_packed(check_guard, clean):
    delta = '{"type":"assistant/chunk","data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"D"}}}\n'
    log = clean["s/one/session.jsonl"].splitlines(keepends=True)
    check_guard({"s/one/session.jsonl": "".join((*log[:8], delta * 3, *log[8:]))}, ["one/session.jsonl:9 CANONICAL"])
    check_guard({"s/one/session.jsonl": "".join((*log[:8], delta * 2, *log[8:]))}, [])
