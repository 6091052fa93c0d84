"""Settings: the shipped file is complete, overlays change single keys, and every mistake names its line."""

import os
import re
from pathlib import Path

import acp_agent
import msgspec
import pytest
from acp_agent.__main__ import SHIPPED, overlays_in, read_source
from acp_agent.config import TABLES, Config, Source, parse_config, sessions_root
from acp_agent.errors import ConfigError

SHIPPED_SOURCE = Source("config.toml", SHIPPED.read_text("utf-8"))


def parse(*overlays):
    return parse_config([SHIPPED_SOURCE, *(Source(f"overlay{at}.toml", text) for at, text in enumerate(overlays))])


def test_the_shipped_file_names_every_key():
    parse()
    for table, type in TABLES.items():
        for field in msgspec.structs.fields(type):
            assert re.search(rf"^(# )?{field.name} = ", SHIPPED_SOURCE.text, re.M), f"[{table}] {field.name}"
    assert set(TABLES) == {field.name for field in msgspec.structs.fields(Config)}


def test_later_overlays_win_key_by_key():
    config = parse('[model]\nname = "a"\nretries = 5', 'model.name = "b"\n[tools]\nenabled = ["bash"]')
    assert (config.model.name, config.model.retries, config.model.dialect) == ("b", 5, "openai-chat")
    assert config.tools.enabled == ("bash",)
    assert config.tools.output_limit_bytes == parse().tools.output_limit_bytes


FAULTS = [
    ('[model]\nname = "x"\nretrys = 3', "overlay0.toml:3: unknown key 'retrys' in [model]; did you mean 'retries'?"),
    ("[modle]\nretries = 3", "overlay0.toml:1: unknown table [modle]; did you mean 'model'?"),
    ("\nmodel.base = 'x'", "overlay0.toml:2: unknown key 'base' in [model]; did you mean 'base_url'?"),
    ("[turn]\nzzz = 1", "overlay0.toml:2: unknown key 'zzz' in [turn]; known are max_steps"),
    ("model = 3", "overlay0.toml:1: unknown table [model]"),
    ('[model]\nretries = "3"', "overlay0.toml:2: model.retries: Expected `int`, got `str`"),
    (
        '[model]\n\ndialect = "smoke"',
        "overlay0.toml:3: model.dialect: Invalid enum value 'smoke'; "
        "known are openai-chat, openai-responses, anthropic-messages, gemini\n",
    ),
    (
        'model.dialect = "open-responses"',
        "overlay0.toml:1: model.dialect: Invalid enum value 'open-responses'; did you mean 'openai-responses'?\n",
    ),
    (
        '[tools]\nenabled = ["bash", "writefile"]',
        "overlay0.toml:2: tools.enabled: Invalid enum value 'writefile'; did you mean 'write_file'?\n",
    ),
    ("[model]\nretry_after_max = 3", "overlay0.toml:2: unknown key 'retry_after_max' in [model]; did you mean"),
    ("[tools", "overlay0.toml: not TOML: "),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_a_fault_names_file_line_and_what_is_nearest(text, message):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)
    assert str(caught.value).splitlines()[-1].startswith("mend: ")


def test_a_missing_key_is_an_error():
    text = SHIPPED_SOURCE.text.replace("max_steps", "# max_steps")
    with pytest.raises(ConfigError, match=r"mine.toml:\d+: turn: Object missing required field `max_steps`"):
        parse_config([Source("mine.toml", text)])


ROOTS = [
    ("", {}, "/h/.acp-agent/sessions"),
    ("", {"ACP_AGENT_HOME": "/s"}, "/s/sessions"),
    ("/r", {"ACP_AGENT_HOME": "/s"}, "/r"),
]


@pytest.mark.parametrize(("root", "environment", "expected"), ROOTS)
def test_where_sessions_are_kept(root, environment, expected):
    assert sessions_root(parse(f'sessions.root = "{root}"'), environment, "/h") == expected


def test_the_command_ends_with_2_and_the_sentence(spawn):
    agent = spawn(overlay="[tools]\nbash_timeout = 3", greet=False)
    assert agent.wait() == 2
    assert "unknown key 'bash_timeout' in [tools]; did you mean 'bash_timeout_seconds'?" in agent.stderr
    assert "Traceback" not in agent.stderr


def test_the_environment_names_overlays_that_the_command_line_wins_over(spawn, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text(f'{name} = "{name}"')
    variables = {"ACP_AGENT_OVERLAY": os.pathsep.join(str(tmp_path / name) for name in ("one", "two"))}
    agent = spawn(overlay="three = 3", greet=False, variables=variables)
    assert agent.wait() == 2
    assert f"{tmp_path / 'one'}:1: unknown table [one]" in agent.stderr
    (tmp_path / "one").write_text("model.retries = 1\nmodel.backoff_ms = -1")
    (tmp_path / "two").write_text("model.retries = 2")
    (tmp_path / "three").write_text("model.retries = 3")
    sources = [SHIPPED, *overlays_in(variables), tmp_path / "three"]
    assert parse_config([read_source(path) for path in sources[:-1]]).model.retries == 2
    assert parse_config([read_source(path) for path in sources]).model.retries == 3
    assert overlays_in({}) == []


def test_the_version_is_the_packages():
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert f'version = "{acp_agent.__version__}"' in project.read_text("utf-8")
