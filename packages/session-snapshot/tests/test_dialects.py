"""``--dialect``: how an agent is told, and what is refused before anything runs."""

import msgspec
import pytest
from session_snapshot.agent import parse_agent
from session_snapshot.dialects import USUAL, known_dialect, speaking
from session_snapshot.errors import FixtureError, Refused

AGENT = """
command = ["a", "--acp"]

[env]
A = "1"
B = "1"

[model]
dialect = "openai-chat"
base_url_env = "URL"
key_env = "KEY"
name = "gpt"
session_header = "x-session"

[[model.files]]
path = "settings"
text = "of the model"

[dialects.gemini]
key_env = "GEMINI_KEY"
session_header = ""
arguments = ["--gemini"]

[dialects.gemini.env]
B = "2"

[[dialects.gemini.files]]
path = "settings"
text = "of the dialect"
"""


@pytest.fixture
def agent():
    return parse_agent(AGENT, "agent.toml")


def test_what_a_dialect_says_is_laid_over_the_model(suite, agent):
    spoken = speaking(agent, suite.place, "gemini")
    model = spoken.model
    assert (model.dialect, model.base_url_env, model.key_env) == ("gemini", "URL", "GEMINI_KEY")
    assert (model.name, model.session_header) == ("gpt", "")
    assert [file.text for file in model.files] == ["of the model", "of the dialect"]
    assert (spoken.command, spoken.env) == (["a", "--acp", "--gemini"], {"A": "1", "B": "2"})
    assert msgspec.structs.replace(spoken, model=agent.model, command=agent.command, env=agent.env) == agent


def test_the_models_own_dialect_needs_nothing(suite, agent):
    assert speaking(agent, suite.place, "openai-chat") is agent


def test_a_dialect_that_nobody_configured_is_refused_with_what_to_write(suite, agent):
    with pytest.raises(FixtureError) as caught:
        speaking(agent, suite.place, "anthropic-messages")
    assert str(caught.value).splitlines() == [
        "snapshots/scripted/agent.toml: does not say how the agent speaks anthropic-messages",
        'mend: add [dialects.anthropic-messages] with base_url_env = "ANTHROPIC_BASE_URL" and key_env = '
        '"ANTHROPIC_API_KEY", and with arguments, env or files that make it speak anthropic-messages',
    ]
    silent = msgspec.structs.replace(agent, model=None, dialects={})
    with pytest.raises(FixtureError, match='mend: add \\[model\\] with dialect = "gemini"'):
        speaking(silent, suite.place, "gemini")


@pytest.mark.parametrize(
    ("name", "mend"), [("gemni", "write 'gemini'"), ("openai", "write 'openai-chat'"), ("zzz", "one of: openai-chat, ")]
)
def test_what_is_no_dialect(name, mend):
    with pytest.raises(Refused, match=f"unknown dialect '{name}'\nmend: {mend}"):
        known_dialect(name)


def test_the_usual_variables_are_known_for_every_dialect():
    assert [known_dialect(name) for name in USUAL] == list(USUAL)


@pytest.mark.parametrize(
    ("dialect", "said"),
    [
        ("gemni", ["session-snapshot: unknown dialect 'gemni'", "mend: write 'gemini'"]),
        ("gemini", ["snapshots/scripted/agent.toml: does not say how the agent speaks gemini", "mend: add [dialects."]),
    ],
)  # fmt: skip
def test_the_command_refuses_before_anything_runs(suite, dialect, said):
    done = suite.command("replay", "turn", "--dialect", dialect)
    assert (done.returncode, done.stdout) == (2, "")
    assert [part for part in said if part not in done.stderr] == [], done.stderr
    assert "Traceback" not in done.stderr


def test_pytest_itself_refuses_what_is_no_dialect(suite):
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "snapshots", "--snapshot-dialect", "gemni"],
        cwd=suite.root,
        env=suite.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "unknown dialect 'gemni'\nmend: write 'gemini'" in done.stdout and "Traceback" not in done.stdout


def test_the_own_dialect_is_replayed_as_ever(suite):
    """Chunk for chunk, nothing folded and nothing noted; and the command to run again says the flag."""
    done = suite.command("replay", "turn", "--dialect", "openai-chat")
    assert done.returncode == 0 and "1 passed" in done.stdout and "note:" not in done.stdout
    suite.edit("stdout.golden.jsonl", "there", "their")
    red = suite.command("replay", "turn", "--dialect", "openai-chat").stdout
    assert "run again:    nox -s snapshot_agents -- scripted/turn --dialect openai-chat" in red
    assert "mend:         nox -s snapshot_refresh -- scripted/turn" in red


def test_an_agent_that_goes_on_in_its_own_dialect_is_red(suite):
    agent_toml = suite.place.suite_folder / "agent.toml"
    says = '\n[dialects.anthropic-messages]\nbase_url_env = "OPENAI_BASE_URL"\nkey_env = "OPENAI_API_KEY"\n'
    agent_toml.write_text(agent_toml.read_text(encoding="utf-8") + says, encoding="utf-8")
    done = suite.command("replay", "turn", "--dialect", "anthropic-messages")
    assert done.returncode == 1
    assert "model call 0 came in openai-chat, and the agent was told to speak anthropic-messages" in done.stdout
    assert "mend: correct [dialects.anthropic-messages] in agent.toml" in done.stdout
