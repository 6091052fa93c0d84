"""Every way a provider can fail, in every dialect, over the wire: survived, or reported, as its policy says.

The policy (``[model]`` in config.toml): what waiting can mend is asked again, ``retries`` times, as long as the answer
has said nothing; everything else ends the turn with an error, what was said is kept, and the session goes on.
"""

import json
from typing import NamedTuple, get_args

import msgspec
import pytest
from acp_agent.config import ModelConfig
from llm_dialects import DIALECTS, ReasoningBlock, TextBlock, ToolCallBlock
from llm_mock_server import BEHAVIOURS, ScriptedProvider, script_from_json

TEXT = "mock response recovered"
PARTIAL = "discarded partial response"
HUGE = 100_000

WRITES = [
    {"name": "write_file", "arguments": {"path": name, "content": name}, "id": f"call_{name}"}
    for name in ("one", "two")
]
OPTIONS = {
    "chunkDelayMs": 0,
    "headersDelayMs": 0,
    "retryAfterMs": 2000,
    "hugeBytes": HUGE,
    "toolCalls": WRITES,
}
NEVER_COMPACT = "compaction.on_overflow = false"
"""What a full context leads to has its own tests; here it is a refusal like others."""

OVERLAY = "model.retries = 2\nmodel.retry_after_max_ms = 5"
"""With ``backoff_ms = 0`` (see ``spawn``): nothing waits but for a provider that says when to come again, briefly."""


class Row(NamedTuple):
    """What becomes of one prompt that meets a behaviour, and then a provider that is well again.

    served: what answered the requests that the provider saw. retries: the log's ``llm/retry``, code and delay.
    end: the log's ``turn/end``. answer: what the editor gets. kept: the log's assistant messages.
    """

    served: tuple[str, ...]
    retries: tuple[str, ...]
    end: str
    answer: str
    kept: tuple[str, ...]


def answered(name, kept=TEXT):
    return Row((name,), (), "completed", "end_turn", (kept,))


def called(name, kept):
    return Row((name, "success"), (), "completed", "end_turn", (kept, TEXT))


def retried(name, code, delay="0 ms"):
    return Row((name, "success"), (f"{code} after {delay}",), "completed", "end_turn", (TEXT,))


def reported(name, code, *kept):
    return Row((name,), (), f"error {code}", f"-32603 {code}", kept)


ONE_TWO = "write_file(one) write_file(two)"
TWO_ONE = "write_file(two) write_file(one)"

ROWS = {
    row.served[0]: row
    for row in (
        retried("connection_reset", "STREAM_CLOSED"),
        retried("stream_disconnect", "STREAM_CLOSED"),
        retried("stream_eof", "STREAM_CLOSED"),
        reported("partial_eof", "STREAM_CLOSED", f"interrupted: {PARTIAL}"),
        reported("partial_disconnect", "STREAM_CLOSED", f"interrupted: {PARTIAL}"),
        retried("stall", "TIMEOUT"),
        retried("malformed_json", "SERVER_ERROR"),
        retried("malformed_event", "SERVER_ERROR"),
        answered("wrong_content_type"),
        retried("rate_limit", "RATE_LIMIT", "5 ms"),
        retried("server_error", "SERVER_ERROR"),
        retried("service_unavailable", "UNAVAILABLE"),
        reported("quota_exceeded", "QUOTA"),
        reported("auth_error", "AUTH"),
        reported("invalid_request", "INVALID_REQUEST"),
        reported("context_overflow", "CONTEXT_WINDOW_EXCEEDED"),
        Row(("max_tokens",), (), "max-tokens", "max_tokens", (TEXT,)),
        answered("success"),
        answered("reasoning_success", f"(mock reasoning) {TEXT}"),
        called("tool_call_success", ONE_TWO),
        answered("slow_success"),
        retried("empty", "SERVER_ERROR"),
        retried("empty_body", "STREAM_CLOSED"),
        retried("overloaded", "OVERLOADED"),
        reported("mid_stream_error", "SERVER_ERROR", f"interrupted: {PARTIAL}"),
        answered("slow_headers"),
        answered("trickle", f"{TEXT} – žluťoučký 漢字 🙂"),
        answered("duplicate_event", f"{TEXT[:8]}{TEXT}"),
        called("reordered_tool_deltas", ONE_TWO),
        answered("huge_event", "x" * HUGE),
        answered("gzip"),
        answered("keepalive_comments"),
        reported("redirect", "INVALID_REQUEST"),
    )
}

# Where a dialect has one call after the other, the calls themselves come in reverse.
DIFFERENT = {
    ("anthropic-messages", "reordered_tool_deltas"): called("reordered_tool_deltas", TWO_ONE),
    ("gemini", "reordered_tool_deltas"): called("reordered_tool_deltas", TWO_ONE),
}

SPOKEN = ["openai-chat", "openai-responses", "anthropic-messages", "gemini"]

SILENT = {"stall"}
"""What only a clock can tell. The agent that meets it is impatient, the others are not."""


def test_there_is_a_row_for_every_behaviour_and_every_dialect():
    assert list(ROWS) == list(BEHAVIOURS)
    (dialect,) = [field.type for field in msgspec.structs.fields(ModelConfig) if field.name == "dialect"]
    assert set(SPOKEN) == set(DIALECTS) == set(get_args(dialect))
    assert {name for _, name in DIFFERENT} <= set(ROWS)


@pytest.mark.parametrize("dialect", SPOKEN)
def test_each_fault_is_survived_or_reported(provider, spawn, read_log, dialect):
    check_rows(provider, spawn, read_log, dialect, [name for name in ROWS if name not in SILENT])


@pytest.mark.parametrize("dialect", SPOKEN)
def test_silence_is_given_up_and_asked_again(provider, spawn, read_log, dialect):
    check_rows(provider, spawn, read_log, dialect, sorted(SILENT), "model.silence_seconds = 1.0")


@pytest.mark.parametrize("dialect", SPOKEN)
def test_retries_end(provider, spawn, read_log, dialect):
    """A fault that stays is reported once the retries are used up, and nothing is left of it in the history."""
    names = [name for name, row in ROWS.items() if row.retries and name not in SILENT]
    met = meet(provider, spawn, read_log, dialect, names, times="any")
    for name in names:
        code, _, _ = ROWS[name].retries[0].partition(" ")
        expected = Row((name,) * 3, ROWS[name].retries * 2, f"error {code}", f"-32603 {code}", ())
        assert met[name] == expected, name


@pytest.mark.parametrize("dialect", SPOKEN)
def test_any_mixture_of_faults_is_met_by_the_policy_and_twice_the_same(provider, spawn, read_log, dialect):
    """Drawn by a seed, in one conversation that goes on through all of them: each prompt ends as its draws must."""
    weights = {name: 1 for name in ROWS if name not in SILENT}
    entries = [{"kind": "behaviour", "name": "random", "times": "any"}]
    drawn = {"entries": entries, "seed": SEED, "weights": weights, "options": OPTIONS | {"hugeBytes": 100}}
    runs = []
    for _ in range(2):
        server = provider(ScriptedProvider(script_from_json(drawn, "drawn")))
        agent = spawn(server, dialect=dialect, overlay=f"{OVERLAY}\n{NEVER_COMPACT}")
        session = agent.new_session()
        answers = [told(agent.prompt(session, f"prompt {n}")) for n in range(40)]
        labels = [request.label for request in server.requests]
        draws = iter(labels)
        assert answers == [answer_to(draws) for _ in answers]
        assert not list(draws)
        agent.close()
        assert agent.stderr == ""
        read_log(session)
        runs.append((labels, answers))
    assert runs[0] == runs[1]
    assert len(set(runs[0][0])) > 20


SEED = 20


def answer_to(draws):
    """Return what the editor gets when a prompt meets ``draws``; takes as many of them as the agent has to ask for."""
    retries = 0
    for row in (ROWS[name] for name in draws):
        if row.retries and retries < 2:
            retries += 1
        elif row.retries:
            code, _, _ = row.retries[0].partition(" ")
            return f"-32603 {code}"
        elif len(row.kept) > 1:
            retries = 0  # a tool call is answered, and what comes next is asked anew
        else:
            return row.answer
    return "nothing more was asked"


def check_rows(provider, spawn, read_log, dialect, names, overlay=""):
    met = meet(provider, spawn, read_log, dialect, names, overlay=overlay)
    assert met == {name: DIFFERENT.get((dialect, name), ROWS[name]) for name in names}


# ── What happens ────────────────────────────────────────────────────────────────────────────────────────────────────


def meet(provider, spawn, read_log, dialect, names, *, times=1, overlay=""):
    """Let one agent meet each behaviour in a session of its own; return ``{name: Row}`` of what happened.

    Then each session goes on: its next prompt is answered, and the provider hears of the first what was kept of it.
    """
    server = provider(ScriptedProvider(script_from_json(script(names, times), "script")))
    agent = spawn(server, dialect=dialect, overlay=f"{OVERLAY}\n{overlay}")
    seen = {}
    for name in names:
        session, first = agent.new_session(), len(server.requests)
        answer = agent.prompt(session, name)
        served = tuple(request.label for request in server.requests[first:])
        assert agent.prompt(session, f"after {name}") == {"stopReason": "end_turn"}, name
        seen[name] = session, served, told(answer), heard(server.requests[-1])
    agent.close()
    assert agent.stderr == ""
    return {name: row_of(agent, read_log, name, *what) for name, what in seen.items()}


def script(names, times):
    """Return a script that answers a prompt which is a behaviour's name with it, and every other one well."""
    faults = [
        {"kind": "behaviour", "name": name, "when": {"text": rf"(^|\n){name}\Z"}, "times": times} for name in names
    ]
    return {"entries": [*faults, {"kind": "behaviour", "name": "success", "times": "any"}], "options": OPTIONS}


def row_of(agent, read_log, name, session, served, answer, remembered):
    """Return what the log says of the session's first turn, with what was seen outside."""
    _, events = read_log(session)
    turn = [event for event in events if event["data"].get("turn") == 1]
    messages = [event["data"] for event in turn if event["type"] == "assistant/message"]
    retries = [event["data"] for event in turn if event["type"] == "llm/retry"]
    (end,) = [event["data"]["reason"] for event in turn if event["type"] == "turn/end"]
    kept = tuple(spelled(message["message"]["content"]) for message in messages)
    marks = ["interrupted: " if message.get("interrupted") else "" for message in messages]
    marked = tuple(mark + text for mark, text in zip(marks, kept, strict=True))
    if without_thoughts(kept) != without_thoughts(remembered):
        marked = (f"kept {kept}, told the model {remembered}",)
    if shown(agent, session) != "".join(texts(messages)) + TEXT:
        marked = (f"kept {kept}, showed {shown(agent, session)}",)
    return Row(
        served,
        tuple(f"{data['failure']['code']} after {data['delayMs']} ms" for data in retries),
        f"error {end['code']}" if end["kind"] == "error" else end["kind"],
        answer,
        marked,
    )


def told(answer):
    """Return what the editor gets, in a word."""
    if "stopReason" in answer:
        return answer["stopReason"]
    assert answer["message"].startswith("Internal error: turn failed: ")
    return f"{answer['code']} {answer['data']['code']}"


def heard(request):
    """Return what the model is told that it has said so far."""
    messages = DIALECTS[request.dialect].parse_request(request.json).messages
    return tuple(spelled(msgspec.to_builtins(m.content)) for m in messages if m.role == "assistant")


def spelled(content):
    return " ".join(spelled_block(block) for block in content)


def spelled_block(block):
    match msgspec.convert(block, TextBlock | ReasoningBlock | ToolCallBlock):
        case TextBlock(text=text):
            return text
        case ReasoningBlock(text=text):
            return f"({text})"
        case ToolCallBlock(name=name, arguments=arguments):
            return f"{name}({json.loads(arguments)['path']})"


def without_thoughts(kept):
    """Return ``kept`` without thinking: a dialect may not take it back."""
    return tuple(text.removeprefix("(mock reasoning) ") for text in kept)


def texts(messages):
    return [block["text"] for m in messages for block in m["message"]["content"] if block["type"] == "text"]


def shown(agent, session):
    """Return all that the user has been shown as said by the agent in a session."""
    frames = [frame["params"] for frame in agent.frames if frame.get("method") == "session/update"]
    updates = [params["update"] for params in frames if params["sessionId"] == session]
    return "".join(u["content"]["text"] for u in updates if u["sessionUpdate"] == "agent_message_chunk")
