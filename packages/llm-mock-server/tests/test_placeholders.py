"""Placeholders: where they stand, what fills them, and that arguments stay JSON whatever does."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_dialects import DIALECTS, RenderError, escape
from llm_mock_server.placeholders import any_values, fill, has_placeholders, live_values

VALUES = {
    "handle": "h-1",
    "quote": 'say "hi"\\\n',
    "count": 3,
    "on": True,
    "object": {"a": [1]},
    "braces": "{{handle}}",
}


def filled(entry, said="id=a and id=b", **values):
    request = DIALECTS["openai-chat"].parse_request({"messages": [{"role": "user", "content": said}]})
    return fill(entry, live_values(VALUES | values, request))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{handle}}", "h-1"),
        ("<{{handle}}{{count}}>{{on}}", "<h-13>true"),
        ("{{object}}", '{"a":[1]}'),
        ("{{quote}}", 'say "hi"\\\n'),
        ("{{braces}}", "{{handle}}"),
        ("{{{{handle}}", "{{handle}}"),
        ("{{{{{{handle}}", "{{h-1"),
        ("{{{handle}}}", "{h-1}"),
        ("{ {handle}} {{{{9}} }}", "{ {handle}} {{9}} }}"),
        (r"{{fromRequest:id=\w{1,2}}}", "id=b"),
        (r"{{fromRequest:id=(\w+)}}!", "b!"),
        (r"{{fromRequest:id=\w{1}}}", "id=b"),
        (r"{{{{fromRequest:id}}", "{{fromRequest:id}}"),
        (r"{{fromRequest:(?<x>and)}}{{handle}}", "andh-1"),
    ],
)
def test_text(text, expected):
    assert filled({"kind": "say", "text": text}) == {"kind": "say", "text": expected}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"h":"{{handle}}"}', {"h": "h-1"}),
        ('{"h":"<{{quote}}>"}', {"h": '<say "hi"\\\n>'}),
        ('{"h":{{quote}}}', {"h": 'say "hi"\\\n'}),
        ('{"n":{{count}},"m":"{{count}}"}', {"n": 3, "m": "3"}),
        ('{"o":{{object}},"s":"{{object}}"}', {"o": {"a": [1]}, "s": '{"a":[1]}'}),
        (r'{"a":"\"{{quote}}","b":"\\","c":{{on}}}', {"a": '"say "hi"\\\n', "b": "\\", "c": True}),
        ('{"{{handle}}":"{{{{handle}}"}', {"h-1": "{{handle}}"}),
        (r'{"n":{{fromRequest:n=(\d+)}} ,"s":"{{fromRequest:n=(\d+)}}"}', {"n": 12, "s": "12"}),
        ('{"w":{{fromRequest:w=(.*)}} }', {"w": 'a "b"'}),
        (" {{object}}", {"a": [1]}),
        (r"{{fromRequest:(\{.*\})}}", {"x": 1}),
    ],
)
def test_raw_arguments_stay_json(arguments, expected):
    said = 'n=12\nw=a "b"\n{"x":1}'
    call = filled({"toolCalls": [{"name": "f", "arguments": arguments}]}, said)["toolCalls"][0]
    assert json.loads(call["arguments"]) == expected
    assert json.loads(filled({"options": {"toolArguments": arguments}}, said)["options"]["toolArguments"]) == expected


def test_arguments_as_an_object_are_text_all_the_way_down():
    arguments = {"arguments": "{{quote}}", "deep": [{"toolArguments": "{{count}}"}]}
    assert filled({"toolCalls": [{"name": "{{handle}}", "arguments": arguments}]}) == {
        "toolCalls": [{"name": "h-1", "arguments": {"arguments": VALUES["quote"], "deep": [{"toolArguments": "3"}]}}]
    }


def test_deltas_of_a_block_are_one_text():
    deltas = [(0, '{"h":"'), (1, "{{quote}}"), (0, "{{quote}}"), (0, '","n":'), (0, "{{quote}}"), (0, "}")]
    chunks = [{"type": "tool-call-delta", "index": at, "argumentsDelta": text} for at, text in deltas]
    entry = filled({"kind": "chunks", "chunks": chunks})
    pieces = [[c["argumentsDelta"] for c in entry["chunks"] if c["index"] == at] for at in (0, 1)]
    assert json.loads("".join(pieces[0])) == {"h": VALUES["quote"], "n": VALUES["quote"]}
    assert json.loads(pieces[1][0]) == VALUES["quote"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{nobody}}", "{{nobody}}: nothing is known by this name"),
        ("{{cwd:1}}", "{{cwd:1}}: nothing"),
        ("a {{fromRequest:nowhere}}", "{{fromRequest:nowhere}}: nothing in the request's messages matches"),
        ("{{fromRequest:(}}", "{{fromRequest:(}}: bad pattern"),
        ("{{fromRequest:id=} more", "{{fromRequest:id=} more"),
        ("a {{ handle }}", "{{ handle }}: no placeholder begins like this"),
        ("{{9}}", "{{9}}: no placeholder"),
        ("{{{", "{{{: no placeholder"),
        ("{{handle}} {{my name}}", "{{my name}}: no placeholder"),
        ("{{{{ {{x" + "y" * 99, "{{x" + "y" * 29 + "...: no placeholder"),
        ("{{set}}", "{{set}}: a value of type set is no JSON"),
        ("{{nan}}", "{{nan}}: a value of type float is no JSON"),
    ],
)
def test_what_nothing_fills_is_named(text, words):
    for entry in ({"text": text}, {"arguments": f'"{text}"'}, {text: 1}):
        with pytest.raises(RenderError) as caught:
            filled(entry, set={1}, nan=float("nan"))
        assert str(caught.value).replace('"', "").startswith(words)


@given(st.text(), st.text())
def test_any_value_keeps_arguments_json(value, text):
    literal = escape(json.dumps(text, ensure_ascii=False)[1:-1])
    arguments = f'{{"{literal}{{{{v}}}}":["{{{{v}}}}{literal}",{{{{v}}}} ]}}'
    assert json.loads(filled({"arguments": arguments}, v=value)["arguments"]) == {text + value: [value + text, value]}


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_escaped_entries_come_out_as_they_were(value):
    def escaped(value):
        match value:
            case str():
                return escape(value)
            case list():
                return [escaped(item) for item in value]
            case dict():
                return {escape(key): escaped(item) for key, item in value.items()}
        return value

    assert filled(escaped(value)) == value


def test_an_entry_is_checked_before_its_values_are_known():
    entry = {"text": "{{nobody}}", "arguments": '{"a":{{x}},"b":"{{fromRequest:nowhere}}"}', "finish": "{{{{"}
    assert fill(entry, any_values) == {"text": "x", "arguments": '{"a":"x","b":"x"}', "finish": "{{"}
    assert fill({"arguments": "{{whole}}"}, any_values) == {"arguments": "{}"}


@pytest.mark.parametrize("text", ["{{fromRequest:(}}", "{{fromRequest:x", "{{fromRequest:x}"])
def test_what_no_request_could_fill_is_known_before_one_comes(text):
    with pytest.raises(RenderError, match="fromRequest"):
        fill({"text": text}, any_values)


@pytest.mark.parametrize(("value", "has"), [({"a": ["{{x}}"]}, True), ({"{{x}}": 1}, True), ({"a": {"b": {}}}, False)])
def test_whether_there_is_anything_to_fill(value, has):
    assert has_placeholders(value) is has
