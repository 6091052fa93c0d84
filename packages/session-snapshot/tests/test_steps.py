"""``input.json``: every op by its name, every mistake by its line."""

import json
from typing import get_args

import msgspec
import pytest
from session_snapshot.errors import FixtureError
from session_snapshot.steps import Script, Step, op_of, parse_script

NAMES = """
initialize authenticate newSession newSessionExpectError loadSession resumeSession closeSession setMode setModel
setConfigOption prompt promptContent promptExpectError promptAndCancel promptAndWaitForAgentMessage cancel waitForFile
waitForTurnStart waitForTurnEnd waitForUpdate waitForEvent waitForSubagentTurnEnd writeFile removeFile sendRaw restart
kill
""".split()  # noqa: SIM905 - a list literal of them would fill the page

NEEDED = {
    "authenticate": {"methodId": "m"},
    "setMode": {"modeId": "m"},
    "setModel": {"modelId": "m"},
    "setConfigOption": {"configId": "c", "value": "v"},
    "prompt": {"text": "t"},
    "promptContent": {"content": []},
    "promptExpectError": {"text": "t", "code": -32603},
    "promptAndCancel": {"text": "t", "waitForUpdate": {"kind": "k", "contains": "c"}},
    "promptAndWaitForAgentMessage": {"text": "t", "waitForText": "w"},
    "waitForFile": {"path": "p"},
    "waitForEvent": {"type": "turn/end"},
    "writeFile": {"path": "p", "text": "t"},
    "removeFile": {"path": "p"},
    "sendRaw": {"text": "{"},
}


STEPS = {kind.__struct_config__.tag: kind for kind in get_args(Step)}


def test_the_union_holds_every_op_of_the_design() -> None:
    assert sorted(STEPS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_op_is_read(name: str) -> None:
    step = {"op": name, "session": "s"} | NEEDED.get(name, {})
    text = json.dumps({"steps": [step]})
    (read,) = parse_script(text, "input.json").steps
    assert op_of(read) == name
    assert msgspec.to_builtins(read) == msgspec.to_builtins(read) | step


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"steps": []}', "input.json:1: a script without steps proves nothing"),
        ('{"steps": [\n{"op": "promt", "text": ""}]}', "input.json:2: unknown value 'promt' at $.steps[0].op"),
        ('{"steps": [{"op": "prompt", "txt": ""}]}', "nearest known one is 'text'"),
        ('{"steps": [{"op": "prompt"}]}', "missing required field `text`"),
        ('{"steps": [{"op": "kill"}], "permissionAnswers": [{"kind": "allow_onec"}]}', "write 'allow_once'"),
    ],
)  # fmt: skip
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(FixtureError) as caught:
        parse_script(text, "input.json")
    assert said in str(caught.value)


def test_editors_may_name_their_schema() -> None:
    text = '{"$schema": "../x.schema.json", "steps": [{"op": "kill"}]}'
    assert isinstance(parse_script(text, "input.json"), Script)
