"""Behaviour x dialect x (stream, whole), judged by the official SDKs; the rows are in ``sdk_table/``, with a README."""

import json
import sys
import tomllib
import warnings
from operator import attrgetter, methodcaller
from pathlib import Path
from pkgutil import resolve_name
from typing import ClassVar

import anthropic
import openai
import pytest
from llm_dialects import DIALECTS
from llm_mock_server import ScriptedProvider, serve_in_thread
from llm_mock_server.behaviours import NAMES
from llm_mock_server.script import script_from_json

TABLES = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted(Path(__file__).with_name("sdk_table").glob("*.toml"))
}

CITES = {dialect: table.pop("cites") for dialect, table in TABLES.items()}

MESSAGES = [{"role": "user", "content": "hi"}]

# No delay: what is judged is what is said, not when. (On Windows a reset takes with it what was not read yet.)
OPTIONS = {
    "chunkDelayMs": 0,
    "disconnectDelayMs": 50 if sys.platform == "win32" else 0,
    "headersDelayMs": 0,
    "requestId": "req_table",
    "toolArguments": '{"path": "a.txt"}',
    "hugeBytes": 300_000,
}

CALLS = [
    {"id": "call_a", "name": "first_tool", "arguments": '{"path": "a.txt"}'},
    {"id": "call_b", "name": "second_tool", "arguments": '{"path": "b.txt"}'},
]

# What a behaviour needs besides: options, or another script than itself alone.
SETTINGS = {
    "trickle": {"options": {"successText": "naïve 你好 🙂 done"}},
    "reordered_tool_deltas": {"options": {"toolCalls": CALLS}},
    "random": {"seed": 7, "weights": {"success": 1}},
    "redirect": {"entries": ["redirect", "success"]},
    "connection_refused": {"entries": ["connection_refused", "success"]},
}


def provider(name):
    settings = SETTINGS.get(name, {})
    script = {"entries": [name]} | settings | {"options": OPTIONS | settings.get("options", {})}
    return ScriptedProvider(script_from_json(script, name))


# ── What an SDK yields, folded to the members of a row ──────────────────────────────────────────────────────────────


class Seen:
    """What came out of an SDK so far."""

    def __init__(self):
        self.text, self.reasoning, self.calls, self.odd = [], [], {}, 0
        self.finish = self.usage = None

    def call(self, key, call_id=None, name=None, arguments=""):
        """Add to the tool call ``key``; its first piece names it."""
        call = self.calls.setdefault(key, [call_id, name, []])
        call[2] += [arguments] if arguments else []

    def row(self):
        tools = list(self.calls.values())
        row = {"text": self.text, "reasoning": self.reasoning, "tools": tools, "odd": self.odd}
        return {key: value for key, value in (row | {"finish": self.finish, "usage": self.usage}).items() if value}


def is_what_its_type_says(thing):
    """Return whether an SDK's value would pass its own type; the SDKs of OpenAI and Anthropic build without asking."""
    if not hasattr(thing, "model_dump"):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydantic warns of the very thing that is asked here
        members = thing.model_dump(by_alias=True, exclude_unset=True)
    try:
        type(thing).model_validate(members)
    except ValueError:
        return False
    return True


class Driver:
    """One SDK: how it is asked and how what it yields is read; ``hurry``: it will wait in vain."""

    def __init__(self, base_url):
        self.client = self.connect(base_url)

    def run(self, *, streamed, hurry):
        """Ask once; return the members of the row that this makes."""
        seen, when = Seen(), "asking"
        try:
            answer = self.ask_stream(hurry) if streamed else self.ask_whole(hurry)
            when = "reading"
            for thing in self.things(answer, hurry) if streamed else [answer]:
                if is_what_its_type_says(thing):
                    (self.read_event if streamed else self.read_whole)(seen, thing)
                else:
                    seen.odd += 1
        except Exception as error:
            return seen.row() | self.told(error, when)
        return seen.row()

    def run_helper(self):
        """Ask through the SDK's own reader of whole streams; return the members of the row that it adds up to."""
        seen = Seen()
        try:
            self.read_whole(seen, self.ask_helper())
        except Exception as error:
            return {"raises": type(error)}
        return seen.row()

    def told(self, error, when):
        """Return the members of a row that tell an exception."""
        row = {"raises": type(error), "when": when, "status": self.status(error), "word": self.word(error)}
        response = getattr(error, "response", None)
        row["retry_after"] = None if response is None else response.headers.get("retry-after")
        if row["status"] in range(400, 600) and hasattr(error, "request_id"):
            assert error.request_id == "req_table"
        return {key: value for key, value in row.items() if value is not None}


PATIENT = openai.Timeout(30)
HURRIED = openai.Timeout(30, read=0.2)


class Stainless(Driver):
    """What the SDKs of OpenAI and Anthropic share, which one generator made.

    ``made`` is the client's class, ``resource`` what of it is asked, with ``asked`` and, for a stream, ``streamed``;
    ``read_all`` reads all of a stream, ``word_member`` of an exception is the provider's own word for it.
    """

    streamed: ClassVar = {}

    def connect(self, base_url):
        return self.made(base_url=base_url, api_key="k", max_retries=0, timeout=PATIENT)

    def ask_stream(self, hurry):
        return self.resource(self.client).create(**self.asked, **self.streamed, stream=True)

    def ask_whole(self, hurry):
        return self.resource(self.client).create(**self.asked, timeout=HURRIED if hurry else PATIENT)

    def ask_helper(self):
        with self.resource(self.client).stream(**self.asked, **self.streamed) as stream:
            return self.read_all(stream)

    def status(self, error):
        return getattr(error, "status_code", None)

    def word(self, error):
        return getattr(error, self.word_member, None)

    def things(self, stream, hurry):
        """Yield the events of a stream. The head is there: only what follows need not be waited for."""
        if hurry:
            stream.response.request.extensions["timeout"]["read"] = 0.05
        with stream:
            yield from stream


class OpenAiChat(Stainless):
    made = openai.OpenAI
    resource = attrgetter("chat.completions")
    asked: ClassVar = {"model": "mock-model", "messages": MESSAGES}
    streamed: ClassVar = {"stream_options": {"include_usage": True}}
    read_all = methodcaller("get_final_completion")
    word_member = "code"

    def read_event(self, seen, event):
        for choice in event.choices:
            self.read_message(seen, choice.delta)
            seen.finish = choice.finish_reason or seen.finish
        self.read_usage(seen, event.usage)

    def read_whole(self, seen, answer):
        (choice,) = answer.choices
        self.read_message(seen, choice.message)
        seen.finish = choice.finish_reason
        self.read_usage(seen, answer.usage)

    def read_message(self, seen, said):
        seen.text += [said.content] if said.content else []
        thought = getattr(said, "reasoning_content", None)
        seen.reasoning += [thought] if thought else []
        for call in said.tool_calls or []:
            key = getattr(call, "index", call.id)
            seen.call(key, call.id, call.function.name, call.function.arguments)

    def read_usage(self, seen, usage):
        seen.usage = [usage.prompt_tokens, usage.completion_tokens] if usage else seen.usage


class OpenAiResponses(Stainless):
    made = openai.OpenAI
    resource = attrgetter("responses")
    asked: ClassVar = {"model": "mock-model", "input": MESSAGES}
    read_all = methodcaller("get_final_response")
    word_member = "code"

    def read_event(self, seen, event):
        match event.type:
            case "response.output_text.delta":
                seen.text.append(event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                seen.reasoning.append(event.delta)
            case "response.output_item.added" if event.item.type == "function_call":
                seen.call(event.output_index, event.item.call_id, event.item.name, event.item.arguments)
            case "response.function_call_arguments.delta":
                seen.call(event.output_index, arguments=event.delta)
            case "response.completed" | "response.incomplete" | "response.failed":
                self.read_end(seen, event.response)

    def read_whole(self, seen, answer):
        for at, item in enumerate(answer.output):
            match item.type:
                case "message":
                    seen.text += [part.text for part in item.content]
                case "reasoning":
                    seen.reasoning += [part.text for part in [*item.summary, *(item.content or [])]]
                case "function_call":
                    seen.call(at, item.call_id, item.name, item.arguments)
        self.read_end(seen, answer)

    def read_end(self, seen, response):
        why = response.incomplete_details.reason if response.incomplete_details else None
        why = response.error.code if response.error else why
        seen.finish = f"{response.status}: {why}" if why else response.status
        if response.usage:
            seen.usage = [response.usage.input_tokens, response.usage.output_tokens]


class AnthropicMessages(Stainless):
    made = anthropic.Anthropic
    resource = attrgetter("messages")
    asked: ClassVar = {"model": "mock-model", "max_tokens": 100, "messages": MESSAGES}
    read_all = methodcaller("get_final_message")
    word_member = "type"

    def read_event(self, seen, event):
        match event.type:
            case "message_start":
                seen.usage = [event.message.usage.input_tokens, event.message.usage.output_tokens]
            case "content_block_start" if event.content_block.type == "tool_use":
                seen.call(event.index, event.content_block.id, event.content_block.name)
            case "content_block_delta":
                self.read_delta(seen, event.index, event.delta)
            case "message_delta":
                seen.stop_reason = event.delta.stop_reason
                seen.usage = [seen.usage[0], event.usage.output_tokens]
            case "message_stop":
                seen.finish = seen.stop_reason

    def read_delta(self, seen, index, delta):
        match delta.type:
            case "text_delta":
                seen.text.append(delta.text)
            case "thinking_delta":
                seen.reasoning.append(delta.thinking)
            case "input_json_delta":
                seen.call(index, arguments=delta.partial_json)

    def read_whole(self, seen, answer):
        for block in answer.content:
            match block.type:
                case "text":
                    seen.text.append(block.text)
                case "thinking":
                    seen.reasoning.append(block.thinking)
                case "tool_use":
                    seen.call(block.id, block.id, block.name, json.dumps(block.input))
        seen.finish = answer.stop_reason
        seen.usage = [answer.usage.input_tokens, answer.usage.output_tokens]


class Gemini(Driver):
    def connect(self, base_url):
        from google import genai  # a second to import: only where its rows run

        attempts = genai.types.HttpRetryOptions(attempts=1)
        options = genai.types.HttpOptions(base_url=base_url, timeout=30_000, retry_options=attempts)
        return genai.Client(api_key="k", http_options=options)

    def asked(self, hurry):
        config = {"http_options": {"timeout": 300}} if hurry else None
        return {"model": "mock-model", "contents": "hi", "config": config}

    def ask_stream(self, hurry):
        return self.client.models.generate_content_stream(**self.asked(hurry))

    def ask_whole(self, hurry):
        return self.client.models.generate_content(**self.asked(hurry))

    def things(self, stream, hurry):
        yield from stream

    def status(self, error):
        return getattr(error, "code", None)

    def word(self, error):
        return getattr(error, "status", None)

    def read_event(self, seen, answer):
        for candidate in answer.candidates or []:
            for part in (candidate.content and candidate.content.parts) or []:
                self.read_part(seen, part)
            seen.finish = candidate.finish_reason.value if candidate.finish_reason else seen.finish
        if usage := answer.usage_metadata:
            said = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
            seen.usage = [usage.prompt_token_count, said]

    read_whole = read_event

    def read_part(self, seen, part):
        if part.function_call:
            call = part.function_call
            seen.call(len(seen.calls), call.id, call.name, json.dumps(call.args))
        elif part.text:
            (seen.reasoning if part.thought else seen.text).append(part.text)


DRIVERS = {
    "openai-chat": OpenAiChat,
    "openai-responses": OpenAiResponses,
    "anthropic-messages": AnthropicMessages,
    "gemini": Gemini,
}


# ── The table ───────────────────────────────────────────────────────────────────────────────────────────────────────


def rows():
    for dialect, table in TABLES.items():
        for name, row in table.items():
            for mode in ("stream", "whole"):
                yield pytest.param(dialect, name, mode, row.get("both", row.get(mode)), id=f"{dialect}-{name}-{mode}")


def expected(row):
    """Return a row as a run would make it: exceptions as types, long texts written out, what only readers want gone."""
    row = {key: value for key, value in row.items() if key not in ("cite", "note", "calls")}
    if "raises" in row:
        row["raises"] = resolve_name(row["raises"])
    if "text" in row:
        row["text"] = [text if isinstance(text, str) else text["of"] * text["times"] for text in row["text"]]
    return row


def added_up(row):
    """Return a row of pieces with the pieces joined."""
    row |= {key: ["".join(row[key])] for key in ("text", "reasoning") if key in row}
    return row | ({"tools": [[*named, ["".join(said)]] for *named, said in row["tools"]]} if "tools" in row else {})


class Bench:
    """One server for all rows, which answers with the script of the moment, and one client of each SDK."""

    def __init__(self, server):
        self.server, self.drivers = server, {}

    def driver(self, dialect):
        if dialect not in self.drivers:
            self.drivers[dialect] = DRIVERS[dialect](self.server.base_url(dialect))
        return self.drivers[dialect]

    def calls(self):
        return sum(captured.kind == "call" for captured in self.server.requests)


@pytest.fixture(scope="module")
def bench():
    def answer(http):
        return bench.provider(http)

    with serve_in_thread(answer) as server:
        bench = Bench(server)
        yield bench
        for driver in bench.drivers.values():
            driver.client.close()


@pytest.mark.parametrize(("dialect", "name", "mode", "row"), list(rows()))
def test_an_sdk_yields_or_raises_exactly_what_the_row_says(bench, dialect, name, mode, row):
    if name == "connection_refused":
        check_refused(dialect, mode, row)
        return
    bench.provider = provider(name)
    before = bench.calls()
    got = bench.driver(dialect).run(streamed=mode == "stream", hurry=name == "stall")
    bench.server.wait(lambda: bench.server.in_flight == 0)
    assert got == expected(row)
    assert bench.calls() - before == row.get("calls", 1)
    assert bench.provider.remaining == 0
    assert bench.server.failures == ()


def finished():
    for dialect, table in TABLES.items():
        helped = hasattr(DRIVERS.get(dialect), "ask_helper")
        for name, row in table.items() if helped else ():
            told = row.get("both", row.get("stream", {}))
            if "finish" in told and "odd" not in told:
                wanted = expected(row["helper"]) if "helper" in row else added_up(expected(told))
                yield pytest.param(dialect, name, wanted, id=f"{dialect}-{name}")


@pytest.mark.parametrize(("dialect", "name", "row"), list(finished()))
def test_the_readers_of_the_sdks_add_up_to_the_same(bench, dialect, name, row):
    bench.provider = provider(name)
    assert bench.driver(dialect).run_helper() == row


def check_refused(dialect, mode, row):
    with serve_in_thread(provider("connection_refused"), listen=False) as server:
        driver = DRIVERS[dialect](server.base_url(dialect))
        got = driver.run(streamed=mode == "stream", hurry=False)
        driver.client.close()
        assert got == expected(row)
        assert server.requests == ()


def test_every_dialect_has_a_table_and_a_driver():
    assert set(TABLES) == set(DIALECTS) == set(DRIVERS)


@pytest.mark.parametrize("dialect", TABLES)
def test_every_behaviour_has_a_row_and_every_row_a_behaviour(dialect):
    assert set(TABLES[dialect]) == set(NAMES)


@pytest.mark.parametrize("dialect", TABLES)
def test_every_row_is_whole_and_cites_what_is_in_the_sdk(dialect):
    assert all(map(resolve_name, CITES[dialect].values()))
    for name, row in TABLES[dialect].items():
        assert set(row) - {"helper"} in ({"both"}, {"stream", "whole"}), name
        assert {member["cite"] for member in row.values()} <= set(CITES[dialect]), name
