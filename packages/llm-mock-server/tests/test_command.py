"""The command line as values."""

import argparse
import json

import pytest
from llm_dialects import EntryError
from llm_mock_server.command import attributes_of, flag_of, parse, script_of, seed_of
from llm_mock_server.options import FIELDS, Options
from llm_mock_server.script import Named


def script(*argv):
    return script_of(parse(argv))


def labels(script):
    return [entry.label for entry in script.entries]


def test_a_sequence_is_a_script():
    made = script("--sequence", "partial_disconnect, success", "--repeat-last")
    assert labels(made) == ["partial_disconnect", "success"]
    assert (made.repeat_last, made.refuse_first, seed_of(made)) == (True, False, None)


def test_every_option_has_its_flag(tmp_path):
    """And one that is set is set for every entry."""
    wanted = {"chunk_size": 3, "tool_arguments": '{"a": 1}', "success_text": "it's 100 %", "redirect_to": "/there"}
    argv = [word for field, value in wanted.items() for word in (flag_of(field), str(value))]
    for entry in script("--sequence", "success,stall", *argv).entries:
        assert isinstance(entry.act, Named)
        assert {field: getattr(entry.act.options, field) for field in wanted} == wanted
    known = vars(parse(["--sequence", "success"]))
    assert set(Options.__struct_fields__) <= known.keys()


def test_calls_are_said_as_json():
    made = script("--sequence", "tool_call_success", "--tool-calls", '[{"name": "a", "arguments": {"b": 1}}]')
    assert [call.name for call in made.entries[0].act.options.tool_calls] == ["a"]


def test_help_tells_every_flag(capsys):
    with pytest.raises(SystemExit) as ended:
        parse(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    for field in FIELDS.values():
        assert flag_of(field) in told
        assert attributes_of(Options)[field].split()[0] in told


def test_flags_go_before_what_the_file_says(tmp_path):
    file = tmp_path / "script.json"
    written = {
        "entries": ["random", {"kind": "say", "text": "hi"}],
        "seed": 1,
        "options": {"chunkSize": 2, "successText": "file"},
    }
    file.write_text(json.dumps(written), encoding="utf-8")
    made = script("--script", str(file), "--seed", "7", "--success-text", "flag", "--random-weights", "success=1")
    assert (made.seed, made.weights["success"], labels(made)) == (7, 1.0, ["random", "say"])
    options = made.entries[0].act.options
    assert (options.chunk_size, options.success_text) == (2, "flag")
    assert script("--script", str(file)).seed == 1


def test_a_seed_that_nobody_says_is_drawn():
    seeds = {seed_of(script("--sequence", "random")) for _ in range(20)}
    assert len(seeds) > 1


def test_a_refusal_first_is_a_phase():
    made = script("--sequence", "connection_refused,success")
    assert (made.refuse_first, labels(made)) == (True, ["success"])


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--sequence", "sucess"), "--sequence: entries[0].name: no behaviour is called 'sucess'; the nearest known "),
        (("--sequence", "success,,stall"), "entries[1]"),
        (("--sequence", ""), "entries[0]"),
        (("--sequence", "connection_refused"), "must be followed"),
        (("--sequence", "success,connection_refused"), "may stand first only"),
        (("--sequence", "success", "--seed", "1"), "--seed: nothing in --sequence is 'random'"),
        (("--sequence", "success", "--random-weights", "success=1"), "--random-weights: nothing"),
        (("--sequence", "random", "--random-weights", "success"), "--random-weights: 'success' is not NAME=NUMBER"),
        (("--sequence", "random", "--random-weights", "stal=1"), "nearest known is 'stall'"),
        (("--sequence", "random", "--random-weights", "stall=1,stall=2"), "'stall' is weighed twice"),
        (("--sequence", "random", "--random-weights", "stall=-1"), "--random-weights"),
        (("--sequence", "random", "--random-weights", "stall=nan"), "--random-weights"),
        (("--sequence", "random", "--random-weights", "stall=0"), "--random-weights"),
        (("--sequence", "success", "--chunk-size", "0"), "--chunk-size: must be a whole number from 1"),
        (("--sequence", "success", "--chunk-delay-ms", "-1"), "--chunk-delay-ms: must be a whole number from 0"),
        (
            ("--sequence", "success", "--chunk-delay-ms", str(2**31)),
            "--chunk-delay-ms: must be a whole number from 0 to 2147483647",
        ),
        (("--sequence", "success", "--success-text", ""), "--success-text: must be a string that is not empty"),
        (("--sequence", "success", "--tool-arguments", "[1]"), "--tool-arguments: must be a JSON object"),
        (("--sequence", "success", "--tool-calls", "["), "--tool-calls: not JSON"),
        (("--sequence", "success", "--tool-calls", "[" * 100_000), "--tool-calls: not JSON"),
        (("--sequence", "success", "--tool-calls", "{}"), "--tool-calls"),
    ],
)
def test_what_cannot_be_meant_is_named_by_its_flag(argv, words):
    with pytest.raises(EntryError) as raised:
        script(*argv)
    assert words in str(raised.value)
    assert "flag." not in str(raised.value)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "either --sequence or --script"),
        (("--sequence", "success", "--script", "x"), "either --sequence or --script"),
        (("--sequence", "success", "--chunk-sise", "3"), "there is no --chunk-sise, the nearest is --chunk-size"),
        (("--sequence", "success", "--chunk-size", "x"), "--chunk-size"),
        (("--sequence", "success", "--port", "65536"), "'65536' is no whole number from 0 to 65535"),
        (("--sequence", "success", "--control-port", "-1"), "--control-port"),
        (("--sequence", "success", "--listen-delay-ms", "1e9"), "'1e9' is no whole number"),
        (("--sequence", "success", "--journal-limit", "9" * 5000), "--journal-limit"),
        (("--sequence", "random", "--seed", str(2**32)), "--seed"),
        (("--sequence", "success", "--repeat", "3"), "the nearest is --repeat-last"),
    ],
)
def test_a_wrong_flag_ends_it_with_a_line_and_its_mend(capsys, argv, words):
    with pytest.raises(SystemExit) as ended:
        parse(argv)
    said = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert words in said[0]
    assert said[1:] == ["mend: correct the flag; llm-mock-server --help lists them"]


def test_the_documentation_of_attributes_is_read():
    class Documented:
        """What.

        Attributes:
            one: The first ``thing``,
                which goes on.
            two: The second.

        Raises:
            three: no.
        """

    assert attributes_of(Documented) == {"one": "The first thing, which goes on", "two": "The second"}
    assert attributes_of(argparse.Namespace) == {}


def test_an_empty_key_is_refused(capsys):
    with pytest.raises(SystemExit):
        script("--sequence", "success", "--api-key=")
    assert "--api-key: must not be empty" in capsys.readouterr().err
