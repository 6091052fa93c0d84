"""Conversations that race: whatever the order of arrival, every request binds to its own recorded call.

A recorded tree is grown at random from few words, so that openings, answers and tool results coincide often: twins,
forks of one history, retries. Then agents live through it: each goes on as the tree says from the call it was served,
so a wrong binding sends it down a wrong branch. *Its own* call is one whose recorded request is the intended one, word
for word: calls that differ in nothing may stand for one another.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import (
    BlockEnd,
    Chunks,
    Finish,
    FinishReason,
    Message,
    ReasoningBlock,
    Request,
    TextBlock,
    Throw,
    Tool,
    ToolCallBlock,
    ToolResultPart,
)
from llm_replay import Player, RecordedCall, Recording, Said, Served, lineage

TASKS = ("count the lines of every file", "write a poem about winter trees", "list all open ports here")
RESULTS = ("12 lines found in main", "no such file or directory", "the poem has four verses", "ports 80 and 443 open")
ANSWERS = ("looking into it", "one moment please")


class Node:
    """One recorded call. ``parent`` is an earlier node or ``None``; a ``failing`` one is answered by an error."""

    def __init__(self, parent, said, answer, failing):
        self.parent, self.said, self.answer, self.failing = parent, said, answer, failing
        self.children = []
        if parent is not None:
            parent.children.append(self)

    def __repr__(self):
        return f"({self.parent} > {self.said} > {'FAIL' if self.failing else self.answer})"


@st.composite
def trees(draw, tasks=TASKS, max_size=12):
    nodes = []
    for _ in range(draw(st.integers(1, max_size))):
        parent = draw(st.none() | st.sampled_from(nodes)) if nodes else None
        repeats = parent is not None and parent.failing
        said = draw(st.sampled_from(tasks if parent is None else RESULTS))
        failing = draw(st.sampled_from([False, False, False, True]))
        nodes.append(Node(parent, None if repeats else said, draw(st.sampled_from(ANSWERS)), failing))
    return nodes


def blocks(answer, id, reasoning=True):
    thought = (ReasoningBlock(text="hm", signature=f"sig-{id}"),) if reasoning else ()
    return (*thought, TextBlock(text=answer), ToolCallBlock(id=id, name="bash", arguments=f'{{"c":"{answer}"}}'))


def entry_of(node):
    if node.failing:
        return Throw(chunks=(), message="m", code="RATE_LIMIT")
    ends = [BlockEnd(index=n, block=block) for n, block in enumerate(blocks(node.answer, f"call {node.answer}"))]
    return Chunks(chunks=(*ends, Finish(reason=FinishReason(kind="tool-calls"))))


def user(text):
    return Message(role="user", content=(TextBlock(text=text),))


def grow(history, id, node, answer_blocks):
    """What the agent sends for ``node``, given its parent's history and the blocks it makes of the parent's answer."""
    if node.parent is None:
        return (user(node.said),)
    if node.said is None:
        return history
    result = ToolResultPart(call_id=id, content=(TextBlock(text=node.said),))
    tool = Message(role="tool", content=(result,))
    return (*history, Message(role="assistant", content=answer_blocks), tool)


HEADER = {"system": ("You are an agent.",), "tools": (Tool(name="bash"),), "params": {"model": "m", "temperature": 0}}


def request(messages, **header):
    return Request(messages=messages, **(HEADER | header))


def record(nodes):
    """The recording of ``nodes`` in their order, with the tree that recording itself finds."""
    histories = {}
    for at, node in enumerate(nodes):
        parent = None if node.parent is None else nodes.index(node.parent)
        above = () if parent is None else histories[parent]
        id = "" if parent is None else f"call {node.parent.answer}"
        histories[at] = grow(above, id, node, blocks(node.parent.answer, id) if node.parent else ())
    calls = [Said(request(histories[at]), entry_of(node)) for at, node in enumerate(nodes)]
    return Recording(
        tuple(
            RecordedCall(at, place.lane, place.parent, call.request, call.entry, f"session.jsonl#{at}")
            for at, (call, place) in enumerate(zip(calls, lineage(calls), strict=True))
        )
    )


class Live:
    """Agents living through the tree: what may be asked next, and what was sent for it."""

    def __init__(self, nodes, player, recording, *, rewriting=False, drift=None):
        self.nodes, self.player, self.recording = nodes, player, recording
        self.rewriting, self.drift = rewriting, drift or (lambda node, messages: request(messages))
        self.ready = [(node, ()) for node in nodes if node.parent is None]
        self.outcomes = []
        self.ids = 0

    def step(self, at):
        node, history = self.ready.pop(at % len(self.ready))
        self.ids += 1
        said = node.parent.answer if node.parent else ""
        id = f"live {self.ids}" if self.rewriting else f"call {said}"
        answer = blocks(said, id, reasoning=not self.rewriting)
        asked = self.drift(node, grow(history, id, node, answer))
        outcome = self.player.ask(asked)
        assert isinstance(outcome, Served), f"{asked.messages} is {outcome}"
        call = outcome.call.index
        intended = self.recording.calls[self.nodes.index(node)].request
        assert outcome.call.request == intended
        self.outcomes.append(outcome)
        self.ready += [(child, asked.messages) for child in self.nodes[call].children]


def live_through(nodes, order, **how):
    recording = record(nodes)
    player = Player(recording)
    live = Live(nodes, player, recording, **how)
    while live.ready:
        live.step(order.randrange(1000))
    assert player.unconsumed() == ()
    assert sorted(call for _, call in player.bound) == list(range(len(nodes)))
    return live


@given(trees(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=150)
def test_racing_conversations_bind_to_their_own_calls(nodes, order):
    live = live_through(nodes, order)
    assert {outcome.rank for outcome in live.outcomes} == {1}


@given(trees(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=150)
def test_so_they_do_when_agents_rewrite_what_they_received(nodes, order):
    live = live_through(nodes, order, rewriting=True)
    assert {outcome.rank for outcome in live.outcomes} == {1}


DRIFTS = {
    "system": lambda messages: request(messages, system=("You are another agent.",)),
    "tools": lambda messages: request(messages, tools=(Tool(name="bash", description="new"),)),
    "temperature": lambda messages: request(messages, params={"model": "m", "temperature": 1}),
    "opening": lambda messages: request((user(messages[0].content[0].text + " quickly"), *messages[1:])),
    "context before": lambda messages: request((user("Today is a new day."), *messages)),
}


def opening_of(node):
    while node.parent is not None:
        node = node.parent
    return node


@pytest.mark.parametrize("name", DRIFTS)
@given(trees(), st.randoms(use_true_random=False), st.booleans())
@settings(deadline=None, max_examples=60)
def test_a_drifted_conversation_finds_its_calls_and_takes_no_others(name, nodes, order, rewriting):
    drifted = opening_of(order.choice(nodes))

    def drift(node, messages):
        # What is drifted in the messages is carried along: only the opening's are still undrifted here.
        fresh = node.parent is None or name not in ("opening", "context before")
        return DRIFTS[name](messages) if opening_of(node) is drifted and fresh else request(messages)

    live = live_through(nodes, order, rewriting=rewriting, drift=drift)
    assert any(outcome.differences for outcome in live.outcomes)


def with_more(message):
    """The message with a word more in its one tool result."""
    (result,) = message.content
    (text,) = result.content
    longer = ToolResultPart(call_id=result.call_id, content=(TextBlock(text=text.text + " again"),))
    return Message(role="tool", content=(longer,))


@given(trees(), st.randoms(use_true_random=False), st.booleans())
@settings(deadline=None, max_examples=100)
def test_a_drifted_tool_result_costs_nobody_a_call(nodes, order, rewriting):
    drifted = order.choice(nodes)

    def drift(node, messages):
        said = node is drifted and messages[-1].role == "tool" and node.said is not None
        return request((*messages[:-1], with_more(messages[-1])) if said else messages)

    live = live_through(nodes, order, rewriting=rewriting, drift=drift)
    drifts = [outcome for outcome in live.outcomes if any("again" in str(d.actual) for d in outcome.differences)]
    # Told once: what grows out of the drifted request carries it along without another word.
    assert len(drifts) == (drifted.parent is not None and drifted.said is not None)
