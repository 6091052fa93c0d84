"""A tiny ACP agent for the harness's own tests: well-behaved by default, and as bad as its plan tells it to be.

``scripted_agent.py PLAN``: the plan is a JSON object from a moment (``start``, a method, ``method#2`` for its second
request, ``eof``) to a list of acts; an act is ``[name, argument...]``, one of ACTS. Standard library only, and few of
that: it has to boot within some ten milliseconds.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path

FOREVER = 3600
INFO = {"name": "scripted", "version": "9.8.7"}


class ScriptedAgent:
    def __init__(self, plan):
        self.plan = plan
        self.counts = {}
        self.request = {}
        self.history = []
        self.histories = {}
        self.answer = {"role": "assistant", "content": ""}
        self.told = ""
        self.session = ""
        self.outcome = {}
        self.spent = (0, 0)
        self.asked = 0
        self.early = []
        self.read = b""
        self.out = sys.stdout.buffer

    # ── the conversation ──

    def run(self):
        self.perform("start", [])
        while (line := self.next_line()) is not None:
            self.handle(line)
        self.perform("eof", [])

    def handle(self, line):
        try:
            self.request = json.loads(line)
        except ValueError:
            self.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
            return
        method = self.request.get("method", "")
        self.perform(method, DEFAULTS.get(method, [["refuse"]]))

    def next_line(self):
        return self.early.pop(0) if self.early else self.read_line()

    def read_line(self):
        """The next line of stdin; ``None`` at its end. What was read of later ones is kept where it can be seen."""
        while b"\n" not in self.read and (more := os.read(0, 1 << 16)):
            self.read += more
        line, end, self.read = self.read.partition(b"\n")
        return line + end or None

    def perform(self, moment, default):
        self.counts[moment] = self.counts.get(moment, 0) + 1
        numbered = f"{moment}#{self.counts[moment]}"
        for name, *arguments in self.plan.get(numbered, self.plan.get(moment, default)):
            ACTS[name](self, *arguments)

    def send(self, message):
        self.out.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self.out.flush()

    # ── acts that any agent does ──

    def respond(self, result):
        if "id" in self.request:
            self.send({"jsonrpc": "2.0", "id": self.request["id"], "result": result})

    def refuse(self, code=-32601, message="Method not found"):
        if "id" in self.request:
            error = {"code": code, "message": message}
            self.send({"jsonrpc": "2.0", "id": self.request["id"], "error": error})

    def open(self):
        self.session = os.urandom(16).hex()
        self.history = self.histories.setdefault(self.session, [])
        self.respond({"sessionId": self.session})

    def update(self, kind, members):
        session = self.request.get("params", {}).get("sessionId", self.session)
        self.send(
            {
                "jsonrpc": "2.0",
                "method": "session/update",
                "params": {"sessionId": session, "update": {"sessionUpdate": kind, **members}},
            }
        )

    def say(self, text=None):
        told = self.answer.get("content") if text is None else text.replace("<random>", os.urandom(4).hex())
        content = {"type": "text", "text": told}
        self.update("agent_message_chunk", {"content": content})

    def hear(self, text=None):
        """Take the prompt, or another text, into its session's history."""
        self.session = self.request["params"]["sessionId"]
        self.history = self.histories.setdefault(self.session, [])
        prompt = self.request["params"]["prompt"][0]["text"] if text is None else text
        self.history.append({"role": "user", "content": filled(prompt)})

    def call(self, changes=None, drop=(), last=()):
        """Ask the model; ``changes`` are laid over the body (``system``: the first message), ``drop`` are left out,
        ``last`` put at its end. ``reversed`` in ``changes`` turns the order of all keys round."""
        changes = dict(changes or {})
        system, turned = filled(changes.pop("system", SYSTEM)), changes.pop("reversed", False)
        body = {
            "model": "fake-model",
            "stream": True,
            "tools": TOOLS,
            "messages": [{"role": "system", "content": system}, *self.history],
        }
        body = {key: value for key, value in (changes | body | changes).items() if key not in drop}
        body |= {key: body.pop(key) for key in last}
        body = turned_round(body) if turned else body
        status, self.told = self.http("POST", "/chat/completions", json.dumps(body))
        text = self.told
        self.spent = read_usage(text)
        self.answer = read_stream(text) if status == 200 else {"role": "assistant", "content": f"status {status}"}
        if status == 200:
            self.history.append(self.answer)

    def http(self, method, path, body=None):
        place, _, prefix = os.environ["OPENAI_BASE_URL"].removeprefix("http://").partition("/")
        host, _, port = place.rpartition(":")
        data = (body or "").encode()
        head = f"{method} /{prefix}{path} HTTP/1.0\r\nhost: {place}\r\ncontent-length: {len(data)}\r\n"
        head += (
            f"authorization: Bearer {os.environ.get('OPENAI_API_KEY', '')}\r\ncontent-type: application/json\r\n\r\n"
        )
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head.encode() + data)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        told, _, text = answer.partition(b"\r\n\r\n")
        return int(told.split()[1]), text.decode()

    def results(self, text):
        """Answer every tool call of the last answer with this text."""
        for call in self.answer.get("tool_calls", []):
            self.history.append({"role": "tool", "tool_call_id": call["id"], "content": text})

    def forget(self, first, rest=None):
        """Rewrite the history: drop its first messages, and put others in front of what is left."""
        self.history[:] = [*(rest or []), *self.history[first:]]

    def drop_last(self):
        """Forget the last message, as if the answer had never come."""
        self.history.pop()

    def ask(self, kinds, members=None):
        """Ask for a permission, and wait for the answer."""
        options = [{"optionId": f"option-{kind}", "kind": kind, "name": kind} for kind in kinds]
        tool = {"toolCallId": "call-1", "title": "touch a file"}
        params = {"sessionId": self.session, "toolCall": tool, "options": options}
        self.ask_client("session/request_permission", params | (members or {}))

    def ask_client(self, method, params):
        """Ask the client anything, and wait for its answer."""
        self.asked += 1
        self.send({"jsonrpc": "2.0", "id": f"ask-{self.asked}", "method": method, "params": params})
        while (line := self.read_line()) and json.loads(line).get("id") != f"ask-{self.asked}":
            self.early.append(line)
        self.outcome = json.loads(line) if line else {}

    def respond_usage(self, more=0):
        """End the turn, and tell what the last call cost, or more."""
        prompt, answer = self.spent[0] + more, self.spent[1]
        usage = {"inputTokens": prompt, "outputTokens": answer, "totalTokens": prompt + answer}
        self.respond({"stopReason": "end_turn", "usage": usage})

    def update_usage(self, more=0):
        """Tell how full the context is since the last call, or more."""
        self.update("usage_update", {"used": sum(self.spent) + more, "size": 1 << 17})

    def say_outcome(self):
        self.say(json.dumps(self.outcome.get("result", self.outcome.get("error")), sort_keys=True))

    def await_line(self):
        """Wait until the client sends something, and keep it for later."""
        if (line := self.read_line()) is not None:
            self.early.append(line)

    def write(self, path, text):
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")

    def write_answer(self, path):
        """Write down what the last model call was answered with, to the letter."""
        self.write(path, self.told)

    def log(self, rows, name="session.jsonl"):
        """Write a session log; ``{{session}}`` in it is the session's id, ``"{{input}}"`` the last call's tokens."""
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        text = text.replace('"{{input}}"', str(self.spent[0])).replace('"{{output}}"', str(self.spent[1]))
        self.write(str(Path(os.environ["HOME"]) / "log" / name), text.replace("{{session}}", self.session))

    # ── acts that no agent should do ──

    def raw(self, text, times=1):
        for _ in range(times):
            self.out.write(text.encode("utf-8", "surrogateescape"))
        self.out.flush()

    def octets(self, digits):
        self.out.write(bytes.fromhex(digits))
        self.out.flush()

    def big(self, size):
        """One line of so many bytes, written in pieces; it is valid JSON."""
        self.out.write(b'{"jsonrpc":"2.0","method":"big","params":{"text":"')
        for _ in range(size // 65536):
            self.out.write(b"x" * 65536)
        self.out.write(b"x" * (size % 65536) + b'"}}\n')
        self.out.flush()

    def exit(self, code):
        os._exit(code)

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(self):
        threading.Event().wait()

    def deaf(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def late(self, kind, members, seconds):
        """An update so much later; a client that goes on meanwhile is served first, so that one that does not wait for
        the update gets it in the wrong place."""
        session = self.session
        self.pause(seconds)
        self.request = {"params": {"sessionId": session}}
        self.update(kind, members)

    def pause(self, seconds):
        """Do nothing for so long, but serve a client that goes on meanwhile."""
        request = self.request
        waits = self.early or b"\n" in self.read or select.select([0], [], [], seconds)[0]
        if waits and (line := self.next_line()) is not None:
            self.handle(line)
        self.request = request

    def close_stdout(self):
        os.close(1)

    def spawn(self, how):
        """Leave a process behind."""
        import subprocess  # few need it, and it takes a while

        sleeper = [sys.executable, "-I", "-S", "-c", f"import time; time.sleep({FOREVER})"]
        nothing = subprocess.DEVNULL
        out = None if how == "holding-stdout" else nothing
        if how == "daemon":
            again = f"import subprocess as s; s.Popen({sleeper!r}, start_new_session=True)"
            sleeper = [sys.executable, "-I", "-S", "-c", again]
        child = subprocess.Popen(
            sleeper,
            stdin=nothing,
            stdout=out,
            stderr=nothing,
            start_new_session=how in ("session", "daemon"),
            env={} if how == "nameless" else None,
        )
        if how == "daemon":
            child.wait()

    def mark(self, folder):
        """Tell a test that this point was reached: a file named by the process number."""
        part = Path(folder) / f"{os.getpid()}.part"
        part.write_text(os.environ["HOME"], encoding="utf-8")
        part.replace(Path(folder) / str(os.getpid()))

    def look(self, folder):
        """Tell a test where this process is and what it was given: a file named by the process number."""
        names = ("PYTHONHASHSEED", "HOME", "TMPDIR")
        told = {"cwd": str(Path.cwd())} | {name: os.environ.get(name, "") for name in names}
        (Path(folder) / str(os.getpid())).write_text(json.dumps(told), encoding="utf-8")

    def say_variable(self, name):
        self.say(os.environ.get(name, ""))

    def hold(self, path):
        """Wait, where there is a named pipe, until somebody opens it as well."""
        with contextlib.suppress(FileNotFoundError):
            Path(path).read_bytes()

    def fill(self, path):
        """Fill the file system that a file is on."""
        with Path(path).open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 10, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)

    def dump_environment(self, path):
        Path(path).write_text(json.dumps(dict(os.environ)), encoding="utf-8")

    def fifo(self, path):
        os.mkfifo(path)

    def read_only(self, path):
        """A folder and a file in it that nobody may write."""
        self.write(f"{path}/file.txt", "x")
        (Path(path) / "file.txt").chmod(0o400)
        Path(path).chmod(0o500)

    def stderr(self, text):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def filled(text):
    """A text with this run's day (the one in ``TODAY``, where it is set), place and something random in it."""
    today = os.environ.get("TODAY") or time.strftime("%Y-%m-%d", time.gmtime())
    return text.replace("<date>", today).replace("<cwd>", str(Path.cwd())).replace("<random>", os.urandom(4).hex())


def turned_round(value):
    """The same JSON with the keys of every object in the other order."""
    if isinstance(value, dict):
        return {key: turned_round(item) for key, item in reversed(value.items())}
    return [turned_round(item) for item in value] if isinstance(value, list) else value


def read_stream(text):
    """The assistant message that a stream of chunks makes."""
    message = {"role": "assistant", "content": ""}
    calls = {}
    for line in text.splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:]).get("choices", []):
                delta = choice.get("delta", {})
                message["content"] += delta.get("content") or ""
                for piece in delta.get("tool_calls", []):
                    call = calls.setdefault(piece["index"], {"id": "", "type": "function", "name": "", "arguments": ""})
                    call["id"] += piece.get("id") or ""
                    call["name"] += piece.get("function", {}).get("name") or ""
                    call["arguments"] += piece.get("function", {}).get("arguments") or ""
    if calls:
        message["content"] = message["content"] or None
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in calls.values()
        ]
    return message


def read_usage(text):
    """The prompt and completion tokens that a stream of chunks tells."""
    told = [json.loads(line[6:]).get("usage") for line in text.splitlines() if line.startswith("data: {")]
    return next(((one["prompt_tokens"], one["completion_tokens"]) for one in reversed(told) if one), (0, 0))


SYSTEM = "You are a test."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "touch",
            "description": "Touch a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]
TURN = [["hear"], ["call"], ["say"], ["respond", {"stopReason": "end_turn"}]]
DEFAULTS = {
    "initialize": [["respond", {"protocolVersion": 1, "agentInfo": INFO, "agentCapabilities": {}}]],
    "session/new": [["open"]],
    "session/load": [["respond", {}]],
    "session/prompt": TURN,
    "session/cancel": [],
}
ACTS = {
    "respond": ScriptedAgent.respond,
    "refuse": ScriptedAgent.refuse,
    "open": ScriptedAgent.open,
    "update": ScriptedAgent.update,
    "say": ScriptedAgent.say,
    "hear": ScriptedAgent.hear,
    "call": ScriptedAgent.call,
    "http": ScriptedAgent.http,
    "results": ScriptedAgent.results,
    "forget": ScriptedAgent.forget,
    "drop-last": ScriptedAgent.drop_last,
    "respond-usage": ScriptedAgent.respond_usage,
    "update-usage": ScriptedAgent.update_usage,
    "ask": ScriptedAgent.ask,
    "ask-client": ScriptedAgent.ask_client,
    "say-outcome": ScriptedAgent.say_outcome,
    "await-line": ScriptedAgent.await_line,
    "write": ScriptedAgent.write,
    "write-answer": ScriptedAgent.write_answer,
    "log": ScriptedAgent.log,
    "raw": ScriptedAgent.raw,
    "octets": ScriptedAgent.octets,
    "big": ScriptedAgent.big,
    "exit": ScriptedAgent.exit,
    "die": ScriptedAgent.die,
    "hang": ScriptedAgent.hang,
    "deaf": ScriptedAgent.deaf,
    "late": ScriptedAgent.late,
    "pause": ScriptedAgent.pause,
    "close-stdout": ScriptedAgent.close_stdout,
    "spawn": ScriptedAgent.spawn,
    "mark": ScriptedAgent.mark,
    "look": ScriptedAgent.look,
    "say-variable": ScriptedAgent.say_variable,
    "hold": ScriptedAgent.hold,
    "fill": ScriptedAgent.fill,
    "dump-environment": ScriptedAgent.dump_environment,
    "fifo": ScriptedAgent.fifo,
    "read-only": ScriptedAgent.read_only,
    "stderr": ScriptedAgent.stderr,
}


if __name__ == "__main__":
    ScriptedAgent(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))).run()
