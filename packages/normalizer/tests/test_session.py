"""A session log is normalised and served again: a block's text over all its pieces, and only what can be expanded."""

from datetime import date

from normalizer import Context, Document, Json, erased_share, normalize

CONTEXT = Context(cwd=("/run/x1/work",), dates=(date(2026, 11, 30),))
UUID = "0b5c1f6e-6a0f-4c1e-9f2b-0a1b2c3d4e5f"


def chunk(kind: str, index: int = 0, step: int = 0, **members: Json) -> Json:
    return {
        "type": "assistant/chunk",
        "data": {"turn": 0, "step": step, "chunk": {"type": kind, "index": index, **members}},
    }


def check_session(before: list[Json], after: list[Json], *others: Document) -> None:
    normal = normalize([*others, Document("session.jsonl", "session", before)], CONTEXT)
    assert normal[-1].values == after
    assert normalize(normal, CONTEXT, stored=True) == normal


def test_a_token_across_chunks_stays_whole() -> None:
    check_session(
        [
            chunk("text-delta", text="in /run/"),
            chunk("text-delta", text="x1/wo"),
            chunk("text-delta", text="rk/a {"),
            chunk("text-delta", text="{b"),
        ],
        [
            chunk("text-delta", text="in {{cwd}}"),
            chunk("text-delta", text=""),
            chunk("text-delta", text="/a {{{{"),
            chunk("text-delta", text="b"),
        ],
    )


def test_blocks_steps_and_kinds_of_a_stream_are_texts_of_their_own() -> None:
    rows = [
        chunk("block-start", blockType="text"),
        chunk("text-delta", text="/run/x1"),
        chunk("reasoning-delta", 1, text="/work"),
        chunk("text-delta", step=1, text="/work"),
        chunk("block-start", blockType="text"),
        chunk("text-delta", text="/work"),
    ]
    check_session(rows, rows)


def test_packed_rows_and_lone_chunks_of_one_block_are_one_text() -> None:
    def packed(*args: str) -> Json:
        return {
            "type": "tool-call-chunks",
            "data": {
                "turn": 0,
                "step": 0,
                "index": 0,
                "id": "call_00_x1",
                "name": "bash",
                "dt": [1, 1],
                "args": list(args),
            },
        }

    check_session(
        [
            chunk("tool-call-delta", id="call_00_x1", argumentsDelta='{"dir": "/r'),
            packed("un/x1/wo", 'rk", "n": ', "1}"),
        ],
        [chunk("tool-call-delta", id="call_00_x1", argumentsDelta='{"dir": "{{cwd}}'), packed("", '", "n": ', "1}")],
    )


def test_aux_calls_hold_their_chunks_in_a_list() -> None:
    def aux(*texts: str) -> Json:
        return {
            "type": "llm/aux",
            "data": {
                "purpose": "title",
                "chunks": [{"type": "text-delta", "index": 0, "text": text} for text in texts],
            },
        }

    check_session([aux("/run/x1/", "work")], [aux("{{cwd}}", "")])


def test_a_models_words_hold_only_what_replay_can_expand() -> None:
    text = f"see 2026-11-30 in /run/x1/work, done 2026-11-30T10:00:00Z, took 5ms, {UUID}, PID: 4, session zq-123456"
    said = text.replace("2026-11-30 in /run/x1/work", "{{date}} in {{cwd}}").replace("zq-123456", "{{sessionId:1}}")
    event = {"type": "user/message", "data": {"t": f"{UUID} zq-123456"}}
    check_session(
        [{"type": "session", "id": "zq-123456"}, chunk("text-delta", text=text), event],
        [
            {"type": "session", "id": "{{sessionId:1}}"},
            chunk("text-delta", text=said),
            {"type": "user/message", "data": {"t": "{{uuid:1}} {{sessionId:1}}"}},
        ],
    )


def test_a_model_keeps_the_tool_call_ids_it_gave() -> None:
    block = {"type": "tool-call", "id": "call_00_Zx81", "name": "bash", "arguments": "{}"}
    call = {"type": "tool/call", "data": {"callId": "call_00_Zx81", "name": "bash"}}
    frame = {"method": "session/update", "params": {"toolCallId": "call_00_Zx81"}}
    rows = [chunk("tool-call-delta", id="call_00_Zx81", argumentsDelta="{}"), chunk("block-end", block=block), call]
    check_session(
        rows,
        [*rows[:2], {"type": "tool/call", "data": {"callId": "{{toolCallId:1}}", "name": "bash"}}],
        Document("stdout", "stdout", [frame]),
    )


def test_chunks_of_raw_frames_are_one_text_too() -> None:
    def said(text: str) -> Json:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        return {"method": "session/update", "params": {"update": update}}

    normal = normalize([Document("stdout", "stdout", [said("/run/x1"), said("/work."), {"id": 1}])], CONTEXT)[0].values
    assert normal == [said("{{cwd}}"), said("."), {"id": 1}]


def test_the_erased_share_counts_leaves_and_no_escapes() -> None:
    before = [{"sessionId": "zq-123456", "a": 1, "b": "{{", "c": []}]
    after = normalize([Document("x", "stdout", before)], CONTEXT)[0].values
    assert erased_share(before, after) == 0.25
    assert erased_share([], []) == 0
