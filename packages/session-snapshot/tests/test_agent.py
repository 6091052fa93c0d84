"""``agent.toml``: a closed file; its placeholders."""

import pytest
from session_snapshot.agent import Adapter, ConfigFile, GuardAllow, parse_agent, render
from session_snapshot.errors import FixtureError

HEAD = 'command = ["a"]\n'


def test_every_table_is_read() -> None:
    agent = parse_agent(
        HEAD
        + '[adapter]\narguments = ["--x"]\n[[adapter.files]]\npath = "p"\ntext = "t"\n'
        + '[guard]\nallow = [{code = "HOST", path = "s", contains = "c", reason = "r"}]\n'
        + '[wire]\nallow = [{check = "tools", reason = "r"}]\n'
        + '[[ordering]]\nkind = "usage_update"\nrule = "float"\n'
        + '[[normalize]]\ntoken = "t"\nreason = "r"\nkey = "k"\n',
        "agent.toml",
    )
    assert agent.adapter == Adapter(["--x"], [ConfigFile("p", "t")])
    assert agent.guard.allow == [GuardAllow("HOST", "r", "s", "c")]
    assert (agent.wire.allow[0].check, agent.ordering[0].rule, agent.normalize[0].key) == ("tools", "float", "k")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("command = []\n", "command is empty"),
        (HEAD + 'protocol = "acq"\n', "agent.toml:2: nobody here speaks 'acq'\nmend: set protocol to one of: acp"),
        (HEAD + '[guard]\nallow = [{code = "HOST"}]\n', "missing required field `reason`"),
        (HEAD + "[gard]\n", "unknown key 'gard'; the nearest known one is 'guard'"),
        (HEAD + '[persistence]\nformat = "jsnl"\n', "write 'jsonl'"),
        (HEAD + 'stop = "sigterm"\n', "agent.toml:2: unknown value 'sigterm' at $.stop\nmend: one of: eof, terminate"),
        (
            HEAD + '[install]\nkind = "pip"\n',
            "agent.toml:3: unknown value 'pip' at $.install.kind\nmend: one of: none, ",
        ),
        (HEAD + '[[ordering]]\nrule = "flaot"\n', "at $.ordering[0].rule; the nearest known one is 'float'"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(FixtureError) as caught:
        parse_agent(text, "agent.toml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "filled"),
    [("{{cwd}}/x", "/w/x"), ("{{cwd}}{{home}}", "/w/h"), ("no { brace }", "no { brace }"), ("{{ cwd }}", "{{ cwd }}")],
)
def test_render(text: str, filled: str) -> None:
    assert render(text, {"cwd": "/w", "home": "/h"}, "agent.toml") == filled


def test_an_unknown_placeholder_names_the_known_ones() -> None:
    with pytest.raises(FixtureError, match=r"unknown placeholder \{\{cdw\}\}\nmend: one of \{\{cwd\}\}"):
        render("{{cdw}}", {"cwd": "/w"}, "agent.toml")
