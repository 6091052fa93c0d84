"""The files of a new suite, and of a new scenario, as a person would write them. Pure: answers in, texts out."""

import json
from collections.abc import Sequence
from typing import Any

from session_snapshot.dialects import USUAL
from session_snapshot.init.answers import Answers


def agent_toml(answers: Answers, description: str, state: Sequence[str]) -> str:
    """``agent.toml``. ``state`` is what the agent leaves in its working directory."""
    usual = USUAL[answers.dialect]
    name_env = f"name_env = {quoted(answers.model_env)}\n" if answers.model_env else ""
    lines = {
        "description": quoted(description),
        "command": quoted(list(answers.command.parts)),
        "dialect": quoted(answers.dialect),
        "base_url_env": quoted(answers.base_url_env),
        "key_env": quoted(answers.key_env),
        "name_env": name_env,
        "upstream_url": quoted(usual.upstream_url),
        "persistence": PERSISTENCE.format(state=quoted(list(state))) if state else "",
        "kind": quoted(answers.command.install),
    }
    return AGENT_TOML.format(**lines)


def handshake_toml() -> str:
    """The ``scenario.toml`` of the handshake."""
    return HANDSHAKE_TOML


def handshake_json(login: str) -> str:
    """Its script: the connection opens, by ``login`` where the agent wants one, and a session is made."""
    return script([*opening(login)])


def scenario_toml(prompt: str, pin: bool, scripted: bool) -> str:
    """The ``scenario.toml`` of a new scenario; ``pin``: no other one of the suite pins the header yet."""
    recording = "scripted" if scripted else "live"
    description = " ".join(prompt.split())
    return SCENARIO_TOML.format(
        description=quoted(description if len(description) <= LONGEST else f"{description[: LONGEST - 3]}..."),
        recording=quoted(recording),
        pin=PIN if pin else "",
    )


def scenario_json(prompt: str, login: str) -> str:
    """Its script: one prompt."""
    return script([*opening(login), {"op": "prompt", "text": prompt}])


def upstream_json(answer: str) -> str:
    """The script that stands in for the provider: one answer."""
    return f'{{\n  "entries": [\n    {json.dumps({"kind": "say", "text": answer}, ensure_ascii=False)}\n  ]\n}}\n'


# ── helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def opening(login: str) -> list[dict[str, str]]:
    """The steps every script begins with."""
    logins = [{"op": "authenticate", "methodId": login}] if login else []
    return [{"op": "initialize"}, *logins, {"op": "newSession"}]


def script(steps: Sequence[dict[str, Any]]) -> str:
    """An ``input.json``, a step a line."""
    lines = ",\n".join(f"    {json.dumps(step, ensure_ascii=False)}" for step in steps)
    return f'{{\n  "steps": [\n{lines}\n  ]\n}}\n'


def quoted(value: str | list[str]) -> str:
    """A string, or a list of them, in TOML: its escapes are JSON's, and DEL has to be one as well."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


LONGEST = 100
"""Characters of a description that is taken from a prompt."""

AGENT_TOML = """\
# How this agent is started, told where its model is, and recorded. All keys: session-snapshot schema
description = {description}
command = {command}

[model]
dialect = {dialect}
base_url_env = {base_url_env}  # told a server on this machine
key_env = {key_env}  # told a dummy key
{name_env}\
# An agent that reads a file instead finds it in its home:
# [[model.files]]
# path = ".config/my-agent.json"
# text = '{{"baseUrl": "{{{{baseUrl}}}}", "apiKey": "{{{{key}}}}"}}'

[record]
key_env = {key_env}  # the real key: read when recording, never given to the agent
upstream_url = {upstream_url}
{persistence}
[install]
kind = {kind}
"""

PERSISTENCE = """
[persistence]
state = {state}  # what it leaves in its working directory, compared with nothing
"""

HANDSHAKE_TOML = """\
description = "The connection opens and a session is made; no model is asked."
recording = "authored"

[expect]
model_calls = 0
"""

SCENARIO_TOML = """\
description = {description}
recording = {recording}
{pin}
[expect]  # what the run must show, whatever the goldens say: tools_called, answer_contains, model_calls, ...
stop_reason = "end_turn"
"""

PIN = """
[header]
pin = true  # this scenario shows the system prompt and the tools in full, for the whole suite
"""
