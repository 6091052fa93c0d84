"""Every way a provider can answer or fail, by name; the table at the foot is the whole of it. Pure."""

from collections.abc import Iterator

from llm_dialects import Action

from llm_mock_server import behaviours_answer as answers
from llm_mock_server import behaviours_connection as connections
from llm_mock_server import behaviours_status as statuses
from llm_mock_server import behaviours_stream as streams
from llm_mock_server.fields import a_word
from llm_mock_server.situation import Behaviour, Situation

RANDOM = "random"
"""Not a behaviour: one drawn by ``dice.Dice``."""

CONNECTION_REFUSED = "connection_refused"
"""Not a behaviour of a call: a phase before the server listens."""


def behave(name: str, situation: Situation) -> Iterator[Action]:
    """Return the actions of the behaviour ``name``.

    Raises:
        KeyError: there is none of that name (``check_name`` says so kindly).
    """
    return BEHAVIOURS[name].act(situation)


def check_name(name: str, where: str) -> str:
    """Return ``name`` if it is in ``NAMES``; ``where`` is its place, for messages.

    Raises:
        EntryError: it is not; the nearest known name is named.
    """
    return a_word(name, NAMES, where, "no behaviour is called")


SAME = "the same"
ANSWERED = "the message"

# In this order, one row each. `summary` tells what a streamed call gets, `whole` what one that is not streamed gets.
BEHAVIOURS: dict[str, Behaviour] = {
    row.name: row
    for row in (
        Behaviour(
            name="connection_reset",
            act=connections.connection_reset,
            summary="a TCP reset before the head",
            whole=SAME,
        ),
        Behaviour(
            name="stream_disconnect",
            act=connections.stream_disconnect,
            summary="the head, `disconnectDelayMs` later a reset",
            whole="the head with the length of the message, then as left, without a byte of it",
        ),
        Behaviour(
            name="stream_eof",
            act=connections.stream_eof,
            summary="the events before the first word (a role, `message_start`), then a proper end of the response",
            whole="a complete response that holds the first byte of the message: `{`",
            differs={"gemini": "no event comes before the first word: an empty stream"},
        ),
        Behaviour(
            name="partial_eof",
            act=connections.partial_eof,
            summary="the partial text, then a proper end of the response but none of the stream: no finish",
            whole="a complete response that holds the first half of the message",
        ),
        Behaviour(
            name="partial_disconnect",
            act=connections.partial_disconnect,
            summary="the partial text, `disconnectDelayMs` later a reset",
            whole="the length of the message, the first half of it, then as left",
        ),
        Behaviour(
            name="stall",
            act=connections.stall,
            summary="the head, then nothing until the client goes",
            whole="the head with the length of the message, then as left",
        ),
        Behaviour(
            name="malformed_json",
            act=streams.malformed_json,
            summary="the success text, a comma too many in the JSON of its first event; the others are right",
            whole="the message, its JSON with a comma too many",
        ),
        Behaviour(
            name="malformed_event",
            act=streams.malformed_event,
            summary="the success text, a 7 where the content of its first event belongs: in `choices`",
            whole="the message with a 7 for `choices`",
            differs={
                "openai-responses": "in `delta`; whole: in `output`",
                "anthropic-messages": "in `delta`; whole: in `content`",
                "gemini": "in `candidates`",
            },
        ),
        Behaviour(
            name="wrong_content_type",
            act=streams.wrong_content_type,
            summary="a right stream under `application/json`",
            whole="a right message under `text/plain`",
            differs={"gemini": "a JSON array (no `alt=sse`) comes under `text/event-stream`"},
        ),
        Behaviour(
            name="rate_limit",
            act=statuses.rate_limit,
            summary="429, `retry-after` in whole seconds (rounded up), `retry-after-ms`, `x-ratelimit-*-requests`",
            whole=SAME,
            differs={
                "anthropic-messages": "429, `retry-after`, `anthropic-ratelimit-requests-*`, `x-should-retry`",
                "gemini": "429 `RESOURCE_EXHAUSTED`; when to come again in a `RetryInfo` detail, no header",
            },
        ),
        Behaviour(name="server_error", act=statuses.server_error, summary="500", whole=SAME),
        Behaviour(name="service_unavailable", act=statuses.service_unavailable, summary="503", whole=SAME),
        Behaviour(
            name="quota_exceeded",
            act=statuses.quota_exceeded,
            summary="429 `insufficient_quota`",
            whole=SAME,
            differs={
                "anthropic-messages": "400, told by the words `credit balance is too low`",
                "gemini": "429 `RESOURCE_EXHAUSTED`, told by a limit of a day in its details",
            },
        ),
        Behaviour(
            name="auth_error",
            act=statuses.auth_error,
            summary="401 `invalid_api_key`",
            whole=SAME,
            differs={
                "anthropic-messages": "401 `authentication_error`",
                "gemini": "400 `INVALID_ARGUMENT`, reason `API_KEY_INVALID`: the provider has no 401 for it",
            },
        ),
        Behaviour(name="invalid_request", act=statuses.invalid_request, summary="400", whole=SAME),
        Behaviour(
            name="context_overflow",
            act=statuses.context_overflow,
            summary="400 `context_length_exceeded`",
            whole=SAME,
            differs={
                "anthropic-messages": "400, told by the words `prompt is too long`",
                "gemini": "400, told by the words `input token count ... exceeds`",
            },
        ),
        Behaviour(
            name="max_tokens",
            act=answers.max_tokens,
            summary="the success text, finished by the limit of tokens",
            whole=ANSWERED,
        ),
        Behaviour(
            name="success", act=answers.success, summary="the success text in pieces of `chunkSize`", whole=ANSWERED
        ),
        Behaviour(
            name="reasoning_success",
            act=answers.reasoning_success,
            summary="the reasoning text, then the success text",
            whole=ANSWERED,
        ),
        Behaviour(
            name="tool_call_success",
            act=answers.tool_call_success,
            summary="the tool calls one after the other, the arguments of each cut in their middle",
            whole=ANSWERED,
            differs={"gemini": "each call in one piece"},
        ),
        Behaviour(
            name="slow_success",
            act=answers.slow_success,
            summary="the success text, `chunkDelayMs` before each event",
            whole="as many pauses, then all of the response at once",
        ),
        Behaviour(
            name="empty",
            act=answers.empty,
            summary="a stream in due form: no content, a finish, usage",
            whole="a message of no content",
        ),
        Behaviour(
            name="empty_body",
            act=answers.empty_body,
            summary="200 and a body of 0 bytes",
            whole=SAME,
        ),
        Behaviour(
            name="overloaded",
            act=statuses.overloaded,
            summary="503 `server_is_overloaded`",
            whole=SAME,
            differs={"anthropic-messages": "529 `overloaded_error`", "gemini": "503 `UNAVAILABLE`"},
        ),
        Behaviour(
            name="mid_stream_error",
            act=streams.mid_stream_error,
            summary="the partial text, then the event that tells a server error, and a proper end of the response",
            whole="a message has no place for it: 500, as `server_error`",
            differs={"gemini": "the error is no event but bare JSON, line by line"},
        ),
        Behaviour(
            name="slow_headers",
            act=connections.slow_headers,
            summary="nothing for `headersDelayMs`, then the success text",
            whole="the same with the message",
        ),
        Behaviour(
            name="trickle",
            act=connections.trickle,
            summary="the success text a byte a write; ASCII gets characters of 2, 3 and 4 bytes added, to be split",
            whole="the message a byte a write",
        ),
        Behaviour(
            name="duplicate_event",
            act=streams.duplicate_event,
            summary="the success text, the event of its first piece sent twice, byte for byte",
            whole="the message of what this adds up to: the text with its first piece twice",
        ),
        Behaviour(
            name="reordered_tool_deltas",
            act=answers.reordered_tool_deltas,
            summary="tool calls by turns: half of each, then the other halves, the last call's first; "
            "a single call is made twice",
            whole="the calls in reverse order",
            differs={
                "anthropic-messages": "blocks come one after another: the calls in reverse order",
                "gemini": "calls come whole: in reverse order",
            },
        ),
        Behaviour(
            name="huge_event",
            act=answers.huge_event,
            summary="a text of `hugeBytes` in one event, in one write",
            whole="the message of it, in one write",
        ),
        Behaviour(
            name="gzip",
            act=connections.gzip,
            summary="the success text as one gzip stream, flushed after each event; "
            "plain where `accept-encoding` does not name gzip",
            whole="the message compressed, with its compressed length",
        ),
        Behaviour(
            name="keepalive_comments",
            act=streams.keepalive_comments,
            summary="the success text, the comment `: keep-alive` before each event",
            whole="an empty line for each event of the stream, then the message: still one JSON document",
            differs={
                "anthropic-messages": "a `ping` event after each comment",
                "gemini": "a JSON array (no `alt=sse`) has no comments: empty lines; `google-genai` cannot read "
                "comments and raises `UnknownApiResponseError`",
            },
        ),
        Behaviour(
            name="redirect",
            act=connections.redirect,
            summary="307 to `redirectTo`, else to what was asked with `redirected=` in its query: a client that "
            "follows asks again and gets what comes next in the script",
            whole=SAME,
        ),
    )
}

NAMES: tuple[str, ...] = (*BEHAVIOURS, RANDOM, CONNECTION_REFUSED)
"""What a script may say by name."""
