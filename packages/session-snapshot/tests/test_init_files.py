"""The files of a new suite: whatever is answered, the parsers of every other command read it back."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_snapshot.agent import parse_agent
from session_snapshot.dialects import USUAL
from session_snapshot.errors import Refused
from session_snapshot.init.answers import Answers, check_name, check_variable
from session_snapshot.init.command import Command
from session_snapshot.init.files import (
    agent_toml,
    handshake_json,
    handshake_toml,
    scenario_json,
    scenario_toml,
    upstream_json,
)
from session_snapshot.scenario import parse_scenario
from session_snapshot.steps import Authenticate, Initialize, NewSession, Prompt, parse_script

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: "{{" not in text)
quick = settings(deadline=None, max_examples=60)


def answers(**more):
    told = {"suite": "mine", "command": Command(("my-agent",), "none"), "dialect": "gemini"}
    return Answers(**(told | {"base_url_env": "URL", "key_env": "KEY"} | more))


@quick
@given(parts=st.lists(texts, min_size=1, max_size=4), description=texts, state=st.lists(texts, max_size=2))
def test_any_command_is_read_back(parts, description, state):
    agent = parse_agent(agent_toml(answers(command=Command(tuple(parts), "none")), description, state), "agent.toml")
    assert (agent.command, agent.description, agent.persistence.state) == (parts, description, state)


@pytest.mark.parametrize("dialect", USUAL)
@pytest.mark.parametrize("install", ["workspace", "uv", "none"])
def test_what_was_answered_is_what_the_agent_is(dialect, install):
    told = answers(dialect=dialect, command=Command(("a",), install), model_env="MODEL")
    agent = parse_agent(agent_toml(told, "A.", []), "agent.toml")
    model = agent.model
    assert (model.dialect, model.base_url_env, model.key_env, model.name_env) == (dialect, "URL", "KEY", "MODEL")
    assert (agent.record.key_env, agent.record.upstream_url) == ("KEY", USUAL[dialect].upstream_url)
    assert agent.install.kind == install
    assert agent.persistence.state == []


def test_what_is_commented_out_is_right_as_well():
    """A person takes the marks away, and it works."""
    text = agent_toml(answers(), "A.", [])
    lines = [
        line.removeprefix("# ") if line.startswith(("# [[", "# path", "# text")) else line for line in text.splitlines()
    ]
    (file,) = parse_agent("\n".join(lines), "agent.toml").model.files
    assert file.path == ".config/my-agent.json"
    assert json.loads(file.text) == {"baseUrl": "{{baseUrl}}", "apiKey": "{{key}}"}


def test_the_handshake():
    assert parse_scenario(handshake_toml(), "scenario.toml").recording == "authored"
    assert parse_script(handshake_json(""), "input.json").steps == [Initialize(), NewSession()]
    assert parse_script(handshake_json("key"), "input.json").steps[1] == Authenticate(method_id="key")


@quick
@given(prompt=texts, pin=st.booleans(), scripted=st.booleans())
def test_any_prompt_is_read_back(prompt, pin, scripted):
    scenario = parse_scenario(scenario_toml(prompt, pin, scripted), "scenario.toml")
    assert (scenario.header.pin, scenario.recording) == (pin, "scripted" if scripted else "live")
    assert scenario.expect.stop_reason == "end_turn"
    assert len(scenario.description) <= 100
    assert parse_script(scenario_json(prompt, ""), "input.json").steps[-1] == Prompt(text=prompt)
    assert json.loads(upstream_json(prompt)) == {"entries": [{"kind": "say", "text": prompt}]}


@pytest.mark.parametrize("name", ["mine", "my-agent", "Agent_2.0"])
def test_names_of_folders(name):
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "near"),
    [("my agent", "my-agent'"), ("a:b", "a-b'"), ("nul", "my-nul'"), ("ä", "my-agent'"), ("-x", "x'"), ("a.", "a'")],
)  # fmt: skip
def test_what_no_folder_is_called(name, near):
    with pytest.raises(Refused, match=f"cannot be a folder's name.*\nmend: write '{near}"):
        check_name(name)


@pytest.mark.parametrize("name", ["", "a b", "1A", "sk-123", "A=b", "A\n"])
def test_what_no_variable_is_called_is_not_repeated(name):
    with pytest.raises(Refused) as caught:
        check_variable(name, None)
    assert not name.strip() or name not in str(caught.value).replace("OPENAI_API_KEY", "")
