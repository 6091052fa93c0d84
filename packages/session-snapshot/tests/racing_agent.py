"""An ACP agent that holds many conversations with its model at once, and pauses in each for random times: every run
asks in another order, and says the same in the end.

A prompt names the conversations to hold, by the words of CONVERSATIONS. When all are over, what was heard in each is
told in the order of that table, one message each. Standard library only: it has to boot quickly. In its environment
``STRAY`` makes it ask something more in one of them and swallow the error, and ``DRIFT`` is a text it adds there.
"""

import asyncio
import json
import os
import random
import sys

CHANCE = random.Random(os.urandom(8))
LONGEST = 0.03
"""The longest pause before a model call, in seconds."""

SYSTEMS = {
    "agent": "You are a racing agent.",
    "title": "Name this conversation in three words.",
    "sub": "You are a sub-agent: report when you are done.",
}
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look something up.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
    },
}


class Conversation:
    """One history, as the model is told it; ``heard`` are the texts of its answers."""

    def __init__(self, kind, opening, tools=True, messages=None, heard=None):
        self.kind = kind
        self.tools = tools
        self.messages = messages or [{"role": "user", "content": opening}]
        self.heard = heard or []

    async def ask(self):
        """Ask after a pause. An answer is heard and becomes history; the status of a failure is returned."""
        await a_while()
        messages = [{"role": "system", "content": SYSTEMS[self.kind]}, *self.messages]
        body = {"model": "fake-model", "stream": True} | ({"tools": [TOOL]} if self.tools else {})
        status, text = await post(json.dumps(body | {"messages": messages}))
        if status == 200:
            answer = read_answer(text)
            self.heard.append(answer["content"])
            self.messages.append(answer)
        return status

    async def look(self, what):
        """Answer the tool call of the last answer, and ask again."""
        for call in self.messages[-1].get("tool_calls", []):
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"found {what}"})
        return await self.ask()

    def fork(self, more):
        """Another conversation that goes on from here."""
        return Conversation(
            self.kind, "", self.tools, [*self.messages, {"role": "user", "content": more}], [*self.heard]
        )


async def a_while():
    """Pause for a random time."""
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(CHANCE.uniform(0, LONGEST), over.set_result, None)
    await over


async def post(body):
    """The status and the body of the answer to a model call."""
    place, _, prefix = os.environ["OPENAI_BASE_URL"].removeprefix("http://").partition("/")
    host, _, port = place.rpartition(":")
    data = body.encode()
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /{prefix}/chat/completions HTTP/1.0\r\nhost: {place}\r\ncontent-length: {len(data)}\r\n"
    head += f"authorization: Bearer {os.environ['OPENAI_API_KEY']}\r\ncontent-type: application/json\r\n\r\n"
    writer.write(head.encode() + data)
    answer = await reader.read()
    writer.close()
    told, _, text = answer.partition(b"\r\n\r\n")
    return int(told.split()[1]), text.decode()


def read_answer(text):
    """The assistant message that a stream of chunks makes."""
    message = {"role": "assistant", "content": ""}
    calls = {}
    for line in text.splitlines():
        for choice in json.loads(line[6:]).get("choices", []) if line.startswith("data: {") else []:
            delta = choice.get("delta", {})
            message["content"] += delta.get("content") or ""
            for piece in delta.get("tool_calls", []):
                call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.get("id") or ""
                call["name"] += piece["function"].get("name") or ""
                call["arguments"] += piece["function"].get("arguments") or ""
    if calls:
        named = [{"id": call.pop("id"), "type": "function", "function": call} for _, call in sorted(calls.items())]
        message["tool_calls"] = named
    return message


# ── conversations: what each asks, and what it heard ──


async def main_call():
    talk = Conversation("agent", "do the main task")
    await talk.ask()
    await talk.look("the main thing")
    return [talk.heard]


async def title():
    """Beside the main call, about the same text."""
    talk = Conversation("title", "do the main task", tools=False)
    await talk.ask()
    return [talk.heard]


async def sub_agent(name):
    talk = Conversation("sub", f"do sub-task {name}")
    await talk.ask()
    await talk.look("one thing")
    await talk.look("another thing")
    return [talk.heard]


async def worker(number):
    more = os.environ.get("DRIFT", "") if number == 3 else ""
    talk = Conversation("agent", f"do work {number}{more}")
    await talk.ask()
    await talk.look("the same for every worker")
    if "STRAY" in os.environ and number == 3:
        await talk.look("what nobody recorded")
    return [talk.heard]


async def retry():
    """The first answer is a failure: ask the same again."""
    talk = Conversation("agent", "try what fails at first")
    while await talk.ask() != 200:
        pass
    await talk.look("what was retried")
    return [talk.heard]


async def fork():
    """Two ways on from one history, which race."""
    talk = Conversation("agent", "plan a journey")
    await talk.ask()
    for call in talk.messages[-1]["tool_calls"]:
        talk.messages.append({"role": "tool", "tool_call_id": call["id"], "content": "found a map"})
    ways = [talk.fork(f"go by {way}") for way in ("land", "sea")]

    async def travel(way):
        await way.ask()
        await way.look("the way")

    await asyncio.gather(*map(travel, ways))
    return [way.heard for way in ways]


async def compaction():
    """The history becomes too long: its beginning is replaced, its end is kept."""
    talk = Conversation("agent", "read a long book")
    await talk.ask()
    await talk.look("chapter one")
    await talk.look("chapter two")
    talk.messages = [talk.messages[0], {"role": "user", "content": "Summary: it is a book."}, *talk.messages[3:]]
    await talk.look("chapter three")
    return [talk.heard]


async def twins():
    """Two that ask the same, word for word; each goes on from the answer that it got."""

    async def twin():
        talk = Conversation("agent", "do what your twin does")
        await talk.ask()
        await talk.look("the same as the twin")
        return talk.heard

    return sorted(await asyncio.gather(twin(), twin()))


CONVERSATIONS = {
    "main": main_call,
    "title": title,
    "alpha": lambda: sub_agent("alpha"),
    "beta": lambda: sub_agent("beta"),
    **{f"worker-{number}": (lambda number=number: worker(number)) for number in range(8)},
    "retry": retry,
    "fork": fork,
    "compaction": compaction,
    "twins": twins,
}


# ── the conversation with the client ──


def send(message):
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0"} | message, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


def tell(session, name, heard):
    """What was heard in a conversation, as one message."""
    text = f"{name}: " + " / ".join(" | ".join(texts) for texts in heard)
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "messageId": os.urandom(16).hex(), "content": content}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


async def race(names):
    """Hold conversations at the same time, begun in a random order; what was heard in each."""
    order = CHANCE.sample(names, len(names))
    heard = dict(zip(order, await asyncio.gather(*(CONVERSATIONS[name]() for name in order)), strict=True))
    return {name: heard[name] for name in CONVERSATIONS if name in names}


def handle(request):
    params = request.get("params", {})
    match request["method"]:
        case "initialize":
            return {"protocolVersion": 1, "agentInfo": {"name": "racing", "version": "1.2.3"}, "agentCapabilities": {}}
        case "session/new":
            return {"sessionId": os.urandom(16).hex()}
        case "session/prompt":
            names = params["prompt"][0]["text"].split()
            for name, heard in asyncio.run(race(names)).items():
                tell(params["sessionId"], name, heard)
            return {"stopReason": "end_turn"}


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        call = json.loads(line)
        send({"id": call["id"], "result": handle(call)})
