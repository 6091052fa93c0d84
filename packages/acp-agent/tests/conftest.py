"""The agent as its clients have it: a subprocess on two pipes, before a real provider on loopback."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from llm_mock_server import ScriptedProvider, serve_in_thread

PATIENCE = 30.0
"""Seconds after which a frame that does not come is a failure; never waited for when all is well."""


VENDORS = {
    "openai-chat": "OPENAI",
    "openai-responses": "OPENAI",
    "anthropic-messages": "ANTHROPIC",
    "gemini": "GEMINI",
}
"""dialect -> what the names of its environment variables begin with"""


class AgentProcess:
    """A running agent. ``frames`` holds every frame it wrote, ``raw`` the bytes."""

    def __init__(self, arguments, environment, cwd):
        self.cwd = cwd
        self.process = subprocess.Popen(
            [sys.executable, "-m", "acp_agent", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=cwd,
        )
        self.frames, self.raw, self._calls, self._seen = [], [], 0, 0
        self._incoming: queue.SimpleQueue = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def _read(self):
        for line in self.process.stdout:
            self._incoming.put(line)
        self._incoming.put(None)

    def _read_errors(self):
        self._errors.extend(self.process.stderr)

    def send_raw(self, data: bytes):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method, params=None, **members):
        self.send_raw(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}} | members).encode() + b"\n"
        )

    def start(self, method, **params):
        """Send a request and return its id."""
        self._calls += 1
        self.send(method, params, id=self._calls)
        return self._calls

    def next_frame(self):
        """Return the next frame, in order, each once."""
        line = self._incoming.get(timeout=PATIENCE)
        assert line is not None, f"the agent ended: {self.stderr}"
        self.raw.append(line)
        frame = json.loads(line)
        self.frames.append(frame)
        return frame

    def wait_for(self, predicate):
        """Return the next frame that ``predicate`` accepts."""
        while not predicate(frame := self.next_frame()):
            pass
        return frame

    def answer_to(self, id):
        return self.wait_for(lambda frame: frame.get("id") == id and "method" not in frame)

    def call(self, method, **params):
        """Make a request; return its result, or its error object."""
        frame = self.answer_to(self.start(method, **params))
        return frame.get("result", frame.get("error"))

    def new_session(self):
        return self.call("session/new", cwd=str(self.cwd), mcpServers=[])["sessionId"]

    def start_prompt(self, session, text):
        return self.start("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def prompt(self, session, text="Do it."):
        frame = self.answer_to(self.start_prompt(session, text))
        return frame.get("result", frame.get("error"))

    def answer_permission(self, option):
        """Wait for a permission request and answer it; ``option`` is an option id, a whole result, or an error."""
        request = self.wait_for(lambda frame: frame.get("method") == "session/request_permission")
        if isinstance(option, str):
            option = {"result": {"outcome": {"outcome": "selected", "optionId": option}}}
        self.send_raw(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | option).encode() + b"\n")
        return request

    def updates(self, kind=None):
        """Return the bodies of all session updates so far, perhaps of one kind."""
        bodies = [frame["params"]["update"] for frame in self.frames if frame.get("method") == "session/update"]
        return [body for body in bodies if kind in (None, body["sessionUpdate"])]

    def close(self):
        """Close the pipe, drain what still comes, and return the exit code."""
        self.process.stdin.close()
        return self.wait()

    def wait(self):
        """Wait for the end; return the exit code."""
        while (line := self._incoming.get(timeout=PATIENCE)) is not None:
            self.raw.append(line)
            self.frames.append(json.loads(line))
        code = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return code

    @property
    def stderr(self):
        return b"".join(self._errors).decode()

    def finish(self):
        """End the agent the way clients do, if it still runs."""
        try:
            if self.process.poll() is None:
                assert self.close() == 0, self.stderr
        finally:
            self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            for thread in self._threads:
                thread.join(PATIENCE)
            pipe.close()


@pytest.fixture
def cwd(tmp_path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    """An allowlisted environment with a secret that no command may see."""
    necessary = ("PATH", "SYSTEMROOT", "COMSPEC", "PATHEXT")
    kept = {name: value for name, value in os.environ.items() if name in necessary or name.startswith("COVERAGE_")}
    home = tmp_path / "home"
    home.mkdir()
    return kept | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "ACP_AGENT_HOME": str(tmp_path / "state"),
        "OPENAI_API_KEY": "sk-test-secret",
        "ANTHROPIC_API_KEY": "sk-test-secret",
        "GEMINI_API_KEY": "sk-test-secret",
        "PYTHONWARNINGS": "error",
    }


@pytest.fixture
def provider() -> Iterator[Callable]:
    """Start a provider: ``provider([entry, ...])`` from a script, ``provider(responder)`` from a function."""
    with ExitStack() as stack:

        def start(script, **options):
            responder = script if callable(script) else ScriptedProvider(script)
            return stack.enter_context(serve_in_thread(responder, **options))

        yield start


@pytest.fixture
def spawn(tmp_path, cwd, environment) -> Iterator[Callable]:
    """Start an agent: ``spawn(server, overlay="...")``; it is initialized unless ``greet=False``."""
    agents = []

    def start(server=None, *, overlay="", dialect="openai-chat", greet=True, variables=None, backoff_ms=0):
        path = tmp_path / f"overlay{len(agents)}.toml"
        name = VENDORS[dialect]
        model = (
            f'model.dialect = "{dialect}"\nmodel.base_url_env = "{name}_BASE_URL"\nmodel.api_key_env = "{name}_API_KEY"'
        )
        path.write_text(f"{model}\nmodel.backoff_ms = {backoff_ms}\n{overlay}", "utf-8")
        url = {} if server is None else {f"{name}_BASE_URL": server.base_url(dialect)}
        agent = AgentProcess(["--overlay", str(path)], environment | url | (variables or {}), cwd)
        agents.append(agent)
        if greet:
            agent.call("initialize", protocolVersion=1)
        return agent

    yield start
    for agent in agents:
        agent.finish()


@pytest.fixture
def read_log(tmp_path) -> Callable:
    """Return ``read(session_id) -> (header, events)``; checks that ``seq`` has no gap and every line is whole."""

    def read(session_id):
        raw = (tmp_path / "state" / "sessions" / session_id / "session.jsonl").read_bytes()
        assert raw.endswith(b"\n")
        header, *events = [json.loads(line) for line in raw.splitlines()]
        assert [event["seq"] for event in events] == list(range(len(events)))
        assert all(list(event) == ["type", "seq", "time", "data"] for event in events)
        return header, events

    return read
