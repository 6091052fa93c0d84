"""The control API as a test in any language sees it: HTTP and JSON."""

import http.client
import json
import threading
import urllib.error
import urllib.request

import pytest
from llm_dialects import Head, Stall
from llm_mock_server.provider import ScriptedProvider
from llm_mock_server.script import script_from_json
from llm_mock_server.threaded import serve_in_thread

CHAT = "/v1/chat/completions"


def ask(server, method, path, body=None, raw=None):
    """Ask the control API; return the status and the JSON."""
    data = raw if body is None else json.dumps(body).encode()
    return fetch(urllib.request.Request(server.control_url + path, data, method=method))


def call(server, text="hi", **headers):
    """Call the model; return the status and the JSON."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    return fetch(urllib.request.Request(server.url + CHAT, body, headers))


def fetch(request):
    """Send a request; return the status and the JSON."""
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def expect_cut(work, *arguments):
    """Do what is to be cut off in the middle."""
    with pytest.raises((OSError, http.client.HTTPException)):
        work(*arguments)


def serve_script(*entries, **options):
    return serve_in_thread(ScriptedProvider(entries), control_port=0, **options)


def say(text):
    return {"kind": "say", "text": text}


def told(answer):
    return answer[1]["choices"][0]["message"]["content"]


def test_the_index_says_where_and_what():
    with serve_script(say("one")) as server:
        status, index = ask(server, "GET", "/")
        assert status == 200
        assert index["baseURLs"]["openai-chat"] == server.base_url("openai-chat")
        assert index["listening"] is True
        assert "PUT /script" in index["routes"]
        assert server.control_url != server.url
        assert server.control_url.startswith("http://127.0.0.1:")


def test_a_script_is_put_and_its_state_got():
    with serve_script(say("one"), say("two")) as server:
        assert told(call(server)) == "one"
        state = ask(server, "GET", "/script")[1]
        assert (state["served"], state["remaining"]) == (1, 1)
        status, state = ask(server, "PUT", "/script", {"entries": [say("new"), "rate_limit"]})
        assert (status, state["served"], state["remaining"]) == (200, 0, 2)
        assert told(call(server)) == "new"
        assert call(server)[0] == 429
        assert [captured.label for captured in server.requests] == ["say", "say", "rate_limit"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ({"entries": [{"kind": "sing"}]}, "script: entries[0].kind"),
        ({"entries": ["sucess"]}, "nearest known is 'success'"),
        ({"entries": [], "sede": 1}, "'seed'"),
        ([], "script"),
        (None, "script"),
        ({"entries": ["connection_refused", "success"]}, "connection_refused"),
    ],
)
def test_a_wrong_script_changes_nothing(script, words):
    with serve_script(say("one")) as server:
        status, answer = ask(server, "PUT", "/script", raw=json.dumps(script).encode())
        assert status in (400, 409)
        assert words in answer["error"]["message"]
        assert set(answer["error"]) == {"code", "message", "mend"}
        assert told(call(server)) == "one"


def test_the_mend_of_a_wrong_word_is_the_mend():
    with serve_script() as server:
        error = ask(server, "PUT", "/script", {"entries": ["sucess"]})[1]["error"]
    assert (error["mend"], "mend" in error["message"]) == ("write 'success'", False)


def test_values_are_put_live():
    with serve_script(say("{{name}}"), say("{{name}}")) as server:
        assert "MOCK_PLACEHOLDER_UNFILLED" in json.dumps(call(server))
        assert ask(server, "PUT", "/values", {"name": "here"}) == (200, {"values": {"name": "here"}})
        assert told(call(server)) == "here"
        assert ask(server, "PUT", "/values", [1])[0] == 400
        assert ask(server, "PUT", "/values", {"": "x"})[0] == 400
        assert told(call(server)) == "here"


def test_the_journal_is_read_in_parts():
    with serve_script(*[say("x")] * 5) as server:
        for number in range(5):
            call(server, f"text {number}", Authorization="Bearer sk-secret")
        status, page = ask(server, "GET", "/requests?from=1&limit=2")
        assert (status, page["dropped"], page["next"]) == (200, 0, 3)
        assert [entry["number"] for entry in page["requests"]] == [1, 2]
        entry = page["requests"][0]
        assert entry["json"]["messages"][0]["content"] == "text 1"
        assert json.loads(entry["body"]) == entry["json"]
        assert (entry["label"], entry["outcome"], entry["status"]) == ("say", "completed", 200)
        assert "sk-secret" not in json.dumps(page)
        assert ask(server, "GET", "/requests?from=5")[1] == {"dropped": 0, "next": 5, "requests": []}


def test_a_secret_that_tells_callers_apart_is_not_shown():
    script = {
        "entries": [
            say("one") | {"when": {"session": "Bearer sk-alice"}},
            say("two") | {"when": {"header": {"authorization": "^nobody$"}}},
        ],
        "cursor": {"header": "authorization"},
    }
    with serve_in_thread(ScriptedProvider(script_from_json(script, "s")), control_port=0) as server:
        assert told(call(server, Authorization="Bearer sk-alice")) == "one"
        refused = call(server, Authorization="Bearer sk-alice")
        assert refused[0] == 500
        call(server, Authorization="Bearer sk-bob")
        state = ask(server, "GET", "/script")[1]
        assert [cursor["answers"] for cursor in state["cursors"]] == [1, 0]
        shown = f"{refused} {state} {ask(server, 'GET', '/requests')} {server.requests!r} {server.failures}"
        assert "sk-" not in shown
        assert {entry.cursor for entry in server.requests} == {cursor["key"] for cursor in state["cursors"]}


def test_cursors_are_read_in_parts():
    script = {"entries": ["success"], "cursor": {"header": "x-session"}}
    with serve_in_thread(ScriptedProvider(script_from_json(script, "s")), control_port=0) as server:
        for session in "abcde":
            call(server, **{"x-session": session})
        state = ask(server, "GET", "/script?from=1&limit=3")[1]
        assert [cursor["key"] for cursor in state["cursors"]] == ["b", "c", "d"]
        assert (state["next"], state["served"], state["droppedCursors"]) == (4, 5, 0)


def test_the_journal_shows_any_body(dial, post):
    bodies = [b"\xff", b"", b"[" * 50_000, b'{"a": "\\ud800"}', b'{"model": "m"}' + b" " * 9]
    with serve_script() as server:
        client = dial(server.url)
        for body in bodies:
            client.send(post(body))
            client.read_whole()
        shown = ask(server, "GET", "/requests")[1]["requests"]
    assert [entry["body"] for entry in shown] == [{"base64": "/w=="}, *[body.decode() for body in bodies[1:]]]
    assert [entry["json"] for entry in shown] == [None, None, None, {"a": "\ud800"}, {"model": "m"}]


def test_what_the_journal_dropped_is_said():
    with serve_script(*[say("x")] * 5, keep=2) as server:
        for _ in range(5):
            call(server)
        page = ask(server, "GET", "/requests")[1]
        assert (page["dropped"], [entry["number"] for entry in page["requests"]]) == (3, [3, 4])


def test_a_reset_begins_anew():
    """And drops whoever is still being answered, so that nothing of the old comes after it."""
    with serve_script(say("one"), "stall") as server:
        assert told(call(server)) == "one"
        stalled = threading.Thread(target=expect_cut, args=(call, server))
        stalled.start()
        server.wait(lambda: server.in_flight == 1)
        assert ask(server, "POST", "/reset") == (200, {"ended": 0, "inFlight": 0, "dropped": 0})
        stalled.join()
        assert server.requests == ()
        assert told(call(server)) == "one"
        assert [captured.number for captured in server.requests] == [0]


def test_waiting_for_calls():
    with serve_script(say("one"), say("two"), "stall") as server:
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(ask(server, "GET", "/wait?requests=2")))
        waiting.start()
        call(server)
        call(server)
        waiting.join()
        assert answers == [(200, {"ended": 2, "inFlight": 0, "dropped": 0})]
        status, answer = ask(server, "GET", "/wait?requests=3&timeoutMs=1")
        assert (status, answer["error"]["code"], answer["ended"]) == (408, "TIMEOUT", 2)


def test_closing_frees_whoever_waits_here_too(dial):
    with serve_script("stall") as server:
        client = dial(server.control_url)
        client.send(b"GET /wait?requests=9&timeoutMs=3600000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert ask(server, "GET", "/")[0] == 200
    client.expect_end()


def test_the_end_of_the_refused_phase_is_said_here(dial):
    with serve_script(say("one"), listen=False) as server:
        with pytest.raises(ConnectionRefusedError):
            dial(server.url)
        assert ask(server, "GET", "/")[1]["listening"] is False
        assert ask(server, "PUT", "/script", {"entries": ["connection_refused", say("later")]})[0] == 200
        for _ in range(2):
            status, answer = ask(server, "POST", "/listen")
            assert (status, answer["listening"]) == (200, True)
        assert told(call(server)) == "later"


def test_a_server_without_a_script_says_so():
    with serve_in_thread(lambda request: [Head(200), Stall()], control_port=0) as server:
        for method, path in (("GET", "/script"), ("PUT", "/script"), ("PUT", "/values")):
            status, answer = ask(server, method, path, {})
            assert (status, answer["error"]["code"]) == (409, "NOT_SCRIPTED")
        assert ask(server, "POST", "/reset")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "raw", "status", "code"),
    [
        ("GET", "/scrip", None, 404, "NO_SUCH_PATH"),
        ("GET", "/" + "x" * 5000, None, 404, "NO_SUCH_PATH"),
        ("POST", "/script", b"{}", 405, "WRONG_METHOD"),
        ("DELETE", "/", None, 405, "WRONG_METHOD"),
        ("PUT", "/script", b"", 400, "BAD_JSON"),
        ("PUT", "/script", b"{", 400, "BAD_JSON"),
        ("PUT", "/script", b'{"entries": [], "entries": ["success"]}', 400, "BAD_JSON"),
        ("PUT", "/script", b"\xff\xfe", 400, "BAD_JSON"),
        ("PUT", "/script", b"[" * 100_000, 400, "BAD_JSON"),
        ("PUT", "/script", b'{"entries":[' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"]}", 400, "BAD_SCRIPT"),
        ("PUT", "/values", b"nan", 400, "BAD_JSON"),
        ("PUT", "/script", b" " * 100_001, 413, "BAD_REQUEST"),
        ("GET", "/requests?from=-1", None, 400, "BAD_QUERY"),
        ("GET", "/requests?from=1e3", None, 400, "BAD_QUERY"),
        ("GET", "/requests?limit=" + "9" * 5000, None, 400, "BAD_QUERY"),
        ("GET", "/requests?form=1", None, 400, "BAD_QUERY"),
        ("GET", "/wait?timeoutMs=99999999999", None, 400, "BAD_QUERY"),
        ("GET", "/wait?requests=%D9%A1", None, 400, "BAD_QUERY"),
    ],
)
def test_a_wrong_request_is_answered_in_json(method, path, raw, status, code):
    with serve_script(say("one"), max_body=100_000) as server:
        got, answer = ask(server, method, path, raw=raw)
        assert (got, answer["error"]["code"]) == (status, code)
        assert answer["error"]["mend"]
        assert "Traceback" not in json.dumps(answer)
        assert told(call(server)) == "one"


def test_what_is_not_http_is_answered_too(dial):
    with serve_script() as server:
        client = dial(server.control_url)
        client.send(b"\x16\x03\x01 hello\r\n\r\n")
        head, body = client.read_whole()
        assert head.startswith("HTTP/1.1 400 ")
        assert body["error"]["code"] == "BAD_REQUEST"
