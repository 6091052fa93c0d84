"""The scripted responder: which entry answers what, filled how, and what is said when none is left."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import DIALECTS, DialectError, EntryError, Usage
from llm_mock_server import HttpRequest, ScriptedProvider, script_from_json
from llm_mock_server.journal import CapturedRequest


def call(dialect="openai-chat", *, number=0, prefix="", headers=(), **body):
    """A model call."""
    spoken = DIALECTS[dialect]
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | body
    before = prefix + spoken.base_suffix
    captured = CapturedRequest(
        number=number, call=number, kind="call", dialect=dialect, method="POST", path="", query="", headers=(), body=b""
    )
    path = before + spoken.endpoints[0]
    return HttpRequest("POST", path, "", headers, b"", dialect, body, number, before, captured)


def actions(provider, http):
    return tuple(provider(http))


def ask(provider, dialect="openai-chat", **body):
    """What a call is answered with, the bodies joined."""
    head, *bodies = actions(provider, call(dialect, number=provider.served, **body))
    return head.status, b"".join(body.data for body in bodies).decode()


def text_of(provider, **body):
    status, answer = ask(provider, **body)
    assert status == 200, answer
    return json.loads(answer)["choices"][0]["message"]["content"]


def error_of(provider, **body):
    status, answer = ask(provider, **body)
    assert status == 500
    error = json.loads(answer)["error"]
    return error["code"], error["message"].splitlines()


def say(text, **more):
    return {"kind": "say", "text": text} | more


def user(text):
    return [{"role": "user", "content": text}]


def scripted(*entries, **settings):
    return ScriptedProvider(script_from_json({"entries": list(entries), **settings}, "s.json"))


# ── In order ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_entry_may_leave_in_a_burst():
    provider = scripted(say("a long text", chunkSize=1), say("a long text", chunkSize=1, burst=True), "stall")
    pieces, burst = (actions(provider, call(number=number, stream=True)) for number in range(2))
    assert len(pieces) > 12
    assert burst[0] == pieces[0]
    assert [body.data.count(b"data: ") for body in burst[1:]] == [len(pieces) - 1]


def test_call_n_is_answered_by_entry_n():
    provider = ScriptedProvider([say("one"), say("two")])
    assert [text_of(provider), text_of(provider)] == ["one", "two"]
    assert (provider.served, provider.remaining) == (2, 0)


def test_one_script_speaks_every_dialect():
    provider = ScriptedProvider([say("one"), say("two")])
    assert json.loads(ask(provider, "anthropic-messages", max_tokens=9)[1])["content"][0]["text"] == "one"
    assert text_of(provider) == "two"


def test_an_entry_may_answer_several_calls():
    provider = scripted(say("one", times=2), say("two"))
    assert provider.remaining == 3
    assert [text_of(provider) for _ in range(3)] == ["one", "one", "two"]


def test_the_last_entry_is_repeated_where_the_script_says_so():
    provider = scripted(say("one"), say("two {{fromRequest:.+}}"), repeatLast=True)
    assert [text_of(provider, messages=user(text)) for text in "abc"] == ["one", "two b", "two c"]
    assert (provider.served, provider.remaining) == (3, 0)


def test_there_is_nothing_to_repeat_before_anything_was_said():
    provider = scripted(say("one", when={"model": "x"}), repeatLast=True)
    assert error_of(provider)[0] == "MOCK_SCRIPT_EXHAUSTED"


def test_a_request_the_dialect_cannot_read_takes_no_entry():
    provider = ScriptedProvider([say("one", when={"nth": 1})])
    with pytest.raises(DialectError, match="messages"):
        ask(provider, messages=3)
    assert text_of(provider) == "one"


def test_a_wrong_entry_is_named_by_its_place():
    with pytest.raises(EntryError, match=r"up\.json: entries\[1\]"):
        ScriptedProvider([say("one"), {"kind": "sing"}], where="up.json")


# ── Conditions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_entry_left_that_is_for_the_call_answers_it():
    provider = scripted(
        say("any"),
        say("big", when={"model": "big-*"}),
        say("third", when={"nth": 3}),
        say("title", when={"text": "title"}, times="any"),
    )
    assert text_of(provider, model="big-1") == "any"
    assert text_of(provider, model="small", messages=user("a title")) == "title"
    assert text_of(provider, model="small") == "third"
    assert text_of(provider, model="small", messages=user("a title")) == "title"
    assert provider.remaining == 1
    assert text_of(provider, model="big-2") == "big"
    assert (provider.served, provider.remaining) == (5, 0)


def test_a_call_without_an_entry_counts_as_a_call():
    provider = scripted(say("second", when={"nth": 2}))
    assert error_of(provider)[0] == "MOCK_SCRIPT_EXHAUSTED"
    assert text_of(provider) == "second"


# ── Exhaustion ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_script_that_is_used_up_says_which_call_it_lacks():
    provider = ScriptedProvider([say("one")], where="up.json")
    ask(provider)
    assert error_of(provider) == (
        "MOCK_SCRIPT_EXHAUSTED",
        [
            "up.json: model call 1 (POST /v1/chat/completions, model m, 1 messages) has no entry, the script holds 1",
            "mend: add an entry to up.json",
        ],
    )


def test_an_entry_that_is_for_others_is_named_with_the_reason():
    provider = scripted(
        say("1", when={"model": "x", "nth": 9}),
        say("2", when={"model": "m", "text": "bye"}),
        cursor={"header": "x-session"},
    )
    code, lines = error_of(provider, headers=(("x-session", "alice"),))
    assert code == "MOCK_SCRIPT_EXHAUSTED"
    assert lines[0] == (
        "s.json: model call 0 (POST /v1/chat/completions, model m, 1 messages) of cursor 'alice' has no entry, "
        "the script holds 2; the nearest that is left, s.json: entries[1] (say), is for other calls: "
        "text: 'hi' does not match 'bye'"
    )


def test_exhaustion_is_told_in_the_dialects_words():
    status, answer = ask(ScriptedProvider([]), "anthropic-messages", max_tokens=9)
    error = json.loads(answer)
    assert (status, error["type"], error["error"]["type"]) == (500, "error", "MOCK_SCRIPT_EXHAUSTED")


# ── Placeholders ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_values_are_read_when_the_call_comes():
    provider = ScriptedProvider([say("{{handle}}", times=3)], values={"handle": "h-0"})
    said = [text_of(provider)]
    for value in ("h-1", 2):
        provider.values["handle"] = value
        said.append(text_of(provider))
    assert said == ["h-0", "h-1", "2"]


def test_a_value_of_the_script_gives_way_to_a_live_one():
    provider = scripted(say("{{a}} {{b}}"), say("{{a}} {{b}}"), values={"a": "script", "b": "script"})
    provider.values["a"] = "live"
    assert text_of(provider) == "live script"
    provider.reset()
    assert text_of(provider) == "script script"


@pytest.mark.parametrize("placeholder", ["{{handle}}", "{{fromRequest:handle=(\\w+)}}"])
def test_an_unfilled_placeholder_is_an_error_that_takes_nothing(placeholder):
    provider = scripted(say(f"<{placeholder}>", when={"nth": 1}), say("two"))
    for _ in range(2):
        code, (what, mend) = error_of(provider)
        assert code == "MOCK_PLACEHOLDER_UNFILLED"
        assert what.startswith(f"s.json: entries[0]: {placeholder}: ")
        assert mend.startswith("mend: ")
    assert (provider.served, provider.remaining) == (0, 2)
    provider.values["handle"] = "h1"
    assert text_of(provider, messages=user("handle=h1")) == "<h1>"


def test_what_makes_no_entry_once_it_is_filled_takes_nothing():
    provider = scripted({"kind": "say", "toolCalls": [{"name": "{{tool}}", "arguments": {}}]})
    provider.values["tool"] = ""
    code, (what, _) = error_of(provider)
    assert (code, what) == (
        "MOCK_ENTRY_INVALID",
        "s.json: entries[0].toolCalls[0].name: must not be empty, once its placeholders are filled",
    )
    provider.values["tool"] = "compress"
    assert ask(provider)[0] == 200


def test_the_options_of_behaviours_are_filled():
    provider = scripted("success", options={"successText": "{{name}} {{fromRequest:.+}}"}, values={"name": "x"})
    assert text_of(provider) == "x hi"


# ── Behaviours ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_behaviours_are_called_by_name():
    options = {"successText": "one"}
    provider = scripted({"kind": "behaviour", "name": "success", "options": options}, "success", "rate_limit")
    assert [text_of(provider), text_of(provider)] == ["one", "mock response recovered"]
    assert ask(provider)[0] == 429


def test_turns_with_tools_of_their_own():
    def turn(name, arguments):
        return {
            "kind": "behaviour",
            "name": "tool_call_success",
            "options": {"toolName": name, "toolArguments": arguments},
        }

    provider = scripted(turn("compress", '{"text":"{{text}}"}'), turn("decompress", '{"handle":"{{handle}}"}'))
    provider.values.update(text='say "x"', handle="h1")
    calls = [json.loads(ask(provider)[1])["choices"][0]["message"]["tool_calls"] for _ in range(2)]
    assert [(one["function"]["name"], json.loads(one["function"]["arguments"])) for (one,) in calls] == [
        ("compress", {"text": 'say "x"'}),
        ("decompress", {"handle": "h1"}),
    ]
    assert len({one["id"] for (one,) in calls}) == 2


def drawn(provider, count=40, **more):
    """What ``random`` is, and what the journal calls it."""
    labels = []
    for _ in range(count):
        http = call(**more)
        provider(http)
        labels.append(http.captured.label)
    return labels


def test_random_is_drawn_from_the_seed():
    def provider(seed):
        return scripted("random", repeatLast=True, seed=seed, weights={"success": 1, "empty": 1, "stall": 2})

    assert drawn(provider(1)) == drawn(provider(1)) != drawn(provider(2))
    assert set(drawn(provider(1))) == {"success", "empty", "stall"}


def test_random_is_drawn_for_each_cursor():
    def provider():
        return scripted("random", repeatLast=True, seed=1, cursor={"segment": True})

    together, alone = provider(), {name: drawn(provider(), prefix=name) for name in ("/a", "/b")}
    mixed = [(drawn(together, 1, prefix="/a"), drawn(together, 1, prefix="/b")) for _ in range(40)]
    assert alone == {"/a": [a for (a,), _ in mixed], "/b": [b for _, (b,) in mixed]}
    assert alone["/a"] != alone["/b"]


# ── Cursors ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_caller_has_the_whole_script_and_entries_of_its_own():
    provider = scripted(
        "rate_limit",
        say("alice's", when={"session": "alice"}),
        say("everybody's"),
        cursor={"header": "X-Session"},
    )
    assert provider.remaining == 3

    def status_and_text(name):
        status, answer = ask(provider, headers=(("x-session", name),))
        return json.loads(answer)["choices"][0]["message"]["content"] if status == 200 else status

    assert [status_and_text(name) for name in ("alice", "bob")] == [429, 429]
    assert provider.remaining == 3
    assert [status_and_text(name) for name in ("bob", "alice", "alice")] == ["everybody's", "alice's", "everybody's"]
    assert (provider.served, provider.remaining) == (5, 0)


def test_a_session_that_never_comes_has_its_entries_left():
    provider = scripted(say("x", when={"session": "alice"}), say("y"), cursor={"segment": True})
    assert text_of(provider, prefix="/bob") == "y"
    assert provider.remaining == 1


def test_a_retry_is_the_same_conversation():
    provider = scripted("server_error", say("one"), say("two"), cursor="lineage")
    assert [ask(provider, messages=user(name))[0] for name in ("a", "b", "a", "b")] == [500, 500, 200, 200]
    more = [*user("a"), {"role": "assistant", "content": "one"}, *user("and?")]
    assert text_of(provider, messages=more) == "two"


ENTRIES = [
    "rate_limit",
    {"kind": "say", "toolCalls": [{"name": "f", "arguments": '{"x":"{{fromRequest:.+}}"}'}], "times": 2},
    say("third", when={"nth": 3}),
    "random",
    "tool_call_success",
    say("last", when={"text": "c"}),
]
CALLS = 7


def as_lineage(name, at):
    turns = [{"role": ("user", "assistant")[turn % 2], "content": f"{name} {turn}"} for turn in range(1 + at // 3 * 2)]
    return {"messages": turns}


CALLERS = {
    "lineage": as_lineage,
    "header": lambda name, at: {"headers": (("x-session", name),), "messages": user(f"{name} {at}")},
    "segment": lambda name, at: {"prefix": f"/{name}", "messages": user(f"{name} {at}")},
}


@pytest.mark.parametrize(
    ("cursor", "asked"),
    [
        ("lineage", CALLERS["lineage"]),
        ({"header": "x-session"}, CALLERS["header"]),
        ({"segment": True}, CALLERS["segment"]),
    ],
)
@settings(deadline=None, max_examples=40)
@given(st.data())
def test_how_callers_interleave_changes_no_answer(cursor, asked, data):
    def provider():
        weights = {"success": 1, "empty": 1, "quota_exceeded": 1}
        return scripted(*ENTRIES, cursor=cursor, seed=3, weights=weights, options={"chunkDelayMs": 0})

    def answers(provider, name, at):
        return actions(provider, call(number=0, **asked(name, at)))

    names = data.draw(st.lists(st.sampled_from("abcd"), unique=True, min_size=1))
    alone = {}
    for name in names:
        own = provider()
        alone[name] = [answers(own, name, at) for at in range(CALLS)]
    together, got = provider(), {name: [] for name in names}
    for name in data.draw(st.permutations([name for name in names for _ in range(CALLS)])):
        got[name].append(answers(together, name, len(got[name])))
    assert got == alone


# ── What goes with an answer ────────────────────────────────────────────────────────────────────────────────────────


def test_calls_without_an_id_are_numbered_through_the_script():
    one = {"name": "f", "arguments": {}}
    provider = ScriptedProvider([{"kind": "say", "toolCalls": [one, one]}, {"kind": "say", "toolCalls": [one]}])
    answers = [json.loads(ask(provider)[1]) for _ in range(2)]
    ids = [each["id"] for answer in answers for each in answer["choices"][0]["message"]["tool_calls"]]
    assert ids == ["call_mock_1", "call_mock_2", "call_mock_3"]
    assert [answer["id"] for answer in answers] == ["chatcmpl-mock1", "chatcmpl-mock2"]


def test_usage_is_counted_by_whoever_is_to_count():
    def count(body, chunks):
        return Usage(input_tokens=len(body["messages"]) * 100, output_tokens=len(chunks))

    usage = {"inputTokens": 1, "outputTokens": 2}
    provider = ScriptedProvider([say("0123456789"), "success", say("x", usage=usage)], usage=count)
    told = [json.loads(ask(provider)[1])["usage"] for _ in range(3)]
    assert [(each["prompt_tokens"], each["completion_tokens"]) for each in told[::2]] == [(100, 5), (1, 2)]
    assert told[1]["prompt_tokens"] == 100


def test_the_journal_is_told_what_answered_and_from_which_cursor():
    provider = scripted("success", say("{{x}}"), {"kind": "hang"}, cursor={"segment": True})
    noted = []
    for value in (None, None, "x", None, None):
        if value:
            provider.values["x"] = value
        http = call(prefix="/alice")
        provider(http)
        noted.append(http.captured.label)
        assert http.captured.cursor == "alice"
    assert noted == ["success", "unfilled", "say", "hang", "exhausted"]
    http = call()
    scripted("success")(http)
    assert http.captured.cursor is None


def test_the_state_is_json_and_a_reset_is_a_beginning():
    provider = scripted("success", say("{{x}}"), cursor={"segment": True}, seed=5)
    provider.values["x"] = [1]
    fresh = provider.state() | {"values": {}}
    first = actions(provider, call(prefix="/a"))
    assert json.loads(json.dumps(provider.state())) == {
        "script": "s.json",
        "entries": ["success", "say"],
        "served": 1,
        "remaining": 1,
        "values": {"x": [1]},
        "cursors": [{"key": "a", "calls": 1, "answers": 1, "left": [0, 1], "last": 0}],
        "next": 1,
        "droppedCursors": 0,
    }
    provider.reset()
    assert provider.state() == fresh
    assert actions(provider, call(prefix="/a")) == first


def test_another_script_is_begun_and_a_wrong_one_is_not():
    provider = scripted(say("one"), say("two"))
    provider.values["x"] = "live"
    assert text_of(provider) == "one"
    with pytest.raises(EntryError):
        provider.load([{"kind": "sing"}])
    assert text_of(provider) == "two"
    provider.load([say("{{x}}")])
    assert text_of(provider) == "live"
