"""An answer in the making: what is shown, what is kept, what is left of one cut off. And which proxy is used."""

import pytest
from acp_agent.draft import Draft
from acp_agent.model_http import proxy_for
from llm_dialects import chunks_from_json, to_json

TEXT = {"type": "text", "text": "Hello"}
CALL = {"type": "tool-call", "id": "c", "name": "bash", "arguments": "{}"}
SIGNED = {"type": "text", "text": "", "thoughtSignature": "s"}
THOUGHT = {"type": "reasoning", "text": "Hm"}


def start(index, kind):
    return {"type": "block-start", "index": index, "blockType": kind}


def delta(index, text):
    return {"type": "text-delta", "index": index, "text": text}


def end(index, block):
    return {"type": "block-end", "index": index, "block": block}


STREAMS = [
    ([start(0, "text"), delta(0, "Hel"), delta(0, "lo"), end(0, TEXT)], "Hello", [TEXT], ["Hello"]),
    ([start(0, "text"), delta(0, "Hel")], "Hel", [], ["Hel"]),
    ([start(0, "text"), end(0, TEXT)], "Hello", [TEXT], ["Hello"]),
    ([start(1, "text"), delta(1, "b"), start(0, "text"), delta(0, "a")], "ba", [], ["a", "b"]),
    ([start(0, "tool-call"), end(0, CALL)], "", [CALL], []),
    ([start(0, "reasoning"), end(0, THOUGHT), start(1, "text"), end(1, TEXT)], "Hello", [THOUGHT, TEXT], ["Hello"]),
    ([start(0, "text")], "", [], []),
    ([start(0, "text"), end(0, TEXT | {"text": ""}), start(1, "tool-call"), end(1, CALL)], "", [CALL], []),
    ([start(0, "text"), end(0, SIGNED)], "", [SIGNED], []),
]


@pytest.mark.parametrize(("stream", "shown", "blocks", "partial"), STREAMS)
def test_a_draft(stream, shown, blocks, partial):
    draft = Draft("m")
    told = [draft.add(chunk) for chunk in chunks_from_json(stream)]
    assert "".join(update[1] for update in told if update) == shown
    assert [to_json(block) for block in draft.blocks()] == blocks
    assert [block.text for block in draft.partial_texts()] == partial


PROXIES = [
    ("https://api.example.com/v1", {"HTTPS_PROXY": "http://p:1"}, "p"),
    ("https://api.example.com/v1", {"https_proxy": "http://p:1", "NO_PROXY": "example.com"}, None),
    ("https://api.example.com/v1", {"ALL_PROXY": "http://p:1", "no_proxy": ".example.com"}, None),
    ("https://api.example.com/v1", {"ALL_PROXY": "http://p:1", "no_proxy": "ample.com"}, "p"),
    ("https://api.example.com/v1", {"HTTP_PROXY": "http://p:1"}, None),
    ("https://api.example.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
    ("http://127.0.0.1:9/v1", {"HTTP_PROXY": "http://p:1"}, None),
    ("http://api.example.com/v1", {}, None),
]


@pytest.mark.parametrize(("url", "environment", "host"), PROXIES)
def test_which_proxy_is_used(url, environment, host):
    proxy = proxy_for(url, environment)
    assert (proxy and proxy.url.host.decode()) == host
