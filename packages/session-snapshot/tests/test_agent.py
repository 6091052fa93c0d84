"""``agent.toml``: a closed file; its placeholders."""

import pytest
from session_snapshot.agent import Adapter, ConfigFile, GuardAllow, parse_agent, render
from session_snapshot.errors import FixtureError

HEAD = 'command = ["a"]\n'
RULES = "[[normalize]]\n"
RULE = HEAD + RULES + 'token = "a"\nkey = "k"\nreason = "r"\n'
MODEL = HEAD + '[model]\ndialect = "openai-chat"\n'


def test_every_table_is_read() -> None:
    agent = parse_agent(
        HEAD
        + '[adapter]\narguments = ["--x"]\n[[adapter.files]]\npath = "p"\ntext = "t"\n'
        + '[guard]\nallow = [{code = "HOST", path = "s", contains = "c", reason = "r"}]\n'
        + '[wire]\nallow = [{check = "tools", reason = "r"}]\n'
        + '[[ordering]]\nkind = "usage_update"\nrule = "float"\nreason = "r"\n'
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
        (
            HEAD + '[model]\ndialect = "openai-chatt"\n',
            "agent.toml:3: unknown dialect 'openai-chatt'; the nearest known one",
        ),
        (
            HEAD + '[model]\ndialect = "zzz"\n',
            "mend: one of: anthropic-messages, gemini, openai-chat, openai-responses",
        ),
        (MODEL + "[dialects.gemni]\n", "agent.toml:4: unknown dialect 'gemni'; the nearest known one is 'gemini'"),
        (MODEL + "[dialects.openai-chat]\n", "agent.toml:4: [dialects.openai-chat] is the dialect of [model] itself"),
        (HEAD + "[dialects.gemini]\n", "agent.toml:2: [dialects.gemini] is laid over [model], and there is none"),
        (MODEL + '[dialects.gemini]\nkey = "K"\n', "agent.toml:5: unknown key 'key' in $.dialects[...]"),
        (MODEL + '[dialects.gemini]\narguments = ["{{hom}}"]\n', "agent.toml:5: unknown placeholder {{hom}}"),
        (MODEL + '[dialects.gemini.env]\nA = "{{url}}"\n', "agent.toml:5: unknown placeholder {{url}}"),
        (
            MODEL + '[[dialects.gemini.files]]\npath = "p"\ntext = "{{base}}"\n',
            "agent.toml:6: unknown placeholder {{base}}",
        ),
        (HEAD + '[persistence]\nstate = []\nformat = "session-snapshot"\n', "agent.toml:4: format says that the agent"),
        (HEAD + '[persistence]\nformat = "sqlite"\n', "agent.toml:3: session logs of format 'sqlite' are not read yet"),
        (HEAD + '[persistence]\nformat = "zstd"\n', "'zstd' are not read yet\nmend: leave format and log out"),
        (HEAD + "[capabilities]\nterminal = true\nfss = {}\n", "agent.toml:4: unknown capability 'fss'; the nearest"),
        (HEAD + "[capabilities.fss]\n", "agent.toml:2: unknown capability 'fss'; the nearest known one is 'fs'"),
        (
            RULE + RULES + 'token = "b"\npattern = "("\nreason = "r"\n',
            "agent.toml:6: [[normalize]] b: pattern: missing )",
        ),
        (
            HEAD + RULES + 'token = "a b"\nkey = "k"\nreason = "r"\n',
            "agent.toml:2: [[normalize]] token 'a b' is no name",
        ),
        (HEAD + RULES + 'token = "a"\nkey = "k"\nreason = " "\n', "[[normalize]] a: no reason\nmend: say why"),
        (HEAD + RULES + 'token = "a"\nkey = "k"\n', "agent.toml:2: Object missing required field `reason`"),
        (HEAD + RULES + 'token = "a"\nreason = "r"\n', "nothing to find\nmend: give it path, key or pattern"),
        (HEAD + '[[ordering]]\nreason = "r"\n', "agent.toml:2: [[ordering]] names no frames"),
        (
            HEAD + '[[ordering]]\nexpand = true\n[[ordering]]\nrule = "drop"\n',
            "agent.toml:4: [[ordering]] names no frames",
        ),
        (HEAD + '[[ordering]]\nkind = "k"\nrule = "drop"\n', "agent.toml:2: [[ordering]] k: no reason\nmend: say why"),
        (HEAD + '[[ordering]]\nkind = "k"\n', "agent.toml:2: [[ordering]] k: no rule\nmend: give it rule ="),
        (HEAD + '[env]\nA = "x{{cdw}}"\n', "agent.toml:3: unknown placeholder {{cdw}}\nmend: one of {{cwd}}, "),
        (HEAD + '[env]\nA = "{{baseUrl}}"\n', "agent.toml:3: unknown placeholder {{baseUrl}}"),
        ('command = [\n"a",\n"{{hme}}"]\n', "agent.toml:3: unknown placeholder {{hme}}"),
        (HEAD + '[adapter]\narguments = ["{{x}}"]\n', "agent.toml:3: unknown placeholder {{x}}"),
        (HEAD + '[[adapter.files]]\npath = "p"\ntext = "{{key}}"\n', "agent.toml:4: unknown placeholder {{key}}"),
        (MODEL + '[[model.files]]\npath = "p"\ntext = """\n{{ky}}"""\n', "agent.toml:7: unknown placeholder {{ky}}"),
        (
            HEAD + '[persistence]\nlog = "{{agent}}/x"\nformat = "session-snapshot"\n',
            "agent.toml:3: unknown placeholder {{agent}}",
        ),
        (
            HEAD + '[persistence]\nlog = "{{home}}/x"\n',
            "agent.toml:3: log names a session log, and format does not say",
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


def test_every_placeholder_is_known_where_it_is_filled() -> None:
    told = "{{cwd}}{{home}}{{tmp}}{{agent}}{{baseUrl}}{{origin}}{{key}}"
    log = 'format = "session-snapshot"\nlog = "{{home}}/x"'
    parse_agent(MODEL + f'[env]\nA = "{told}"\n[persistence]\n{log}\n[capabilities]\n_meta = {{}}\n', "a")
