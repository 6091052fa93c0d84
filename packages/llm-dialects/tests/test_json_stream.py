import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import DialectError
from llm_dialects.json_stream import END, ArrayDecoder, encode_item

values = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=6,
)
items = st.lists(st.dictionaries(st.text(max_size=3), values, max_size=3), max_size=4)


def decode(data, size):
    decoder = ArrayDecoder()
    found = [item for at in range(0, len(data), size) for item in decoder.feed(data[at : at + size])]
    return [json.loads(item) for item in found], decoder.over


@settings(deadline=None)
@given(items=items, size=st.integers(1, 40), indent=st.sampled_from([None, 1]), ascii=st.booleans())
def test_any_array_is_read_in_any_pieces(items, size, indent, ascii):
    data = json.dumps(items, indent=indent, ensure_ascii=ascii).encode()
    assert decode(data, size) == (items, True)
    assert decode(data + b"garbage", size) == (items, True)


@settings(deadline=None)
@given(items=items.filter(bool), size=st.integers(1, 40))
def test_what_is_written_is_one_json_text_and_read_back(items, size):
    data = b"".join(encode_item(json.dumps(item).encode(), first=not at) for at, item in enumerate(items))
    assert json.loads(data + END) == items
    assert decode(data, size) == (items, False)


@pytest.mark.parametrize("size", [1, 99])
@pytest.mark.parametrize(
    ("data", "found", "over"),
    [
        (b"", [], False),
        (b" \r\n[", [], False),
        (b"[]", [], True),
        (b'[{"a":"]}\\"{[\\\\"}', [{"a": ']}"{[\\'}], False),
        (b'[{"a":1},\r\n{"b"', [{"a": 1}], False),
        (b'[{"a":{}}\n', [{"a": {}}], False),
        (b'{"error":{"code":5}}', [{"error": {"code": 5}}], False),
    ],
)
def test_arrays_as_they_come(data, found, over, size):
    assert decode(data, size) == (found, over)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[7", "event 1: must be an object, begins with '7'"),
        (b'[{}, "x"]', "event 2: must be an object, begins with '\"'"),
        (b"[}", "event 1: must be an object, begins with '}'"),
    ],
)
def test_items_that_are_no_objects_are_named(data, message):
    with pytest.raises(DialectError, match=message):
        decode(data, 1)
