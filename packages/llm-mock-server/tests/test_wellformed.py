"""What every provider refuses of a call, in every dialect, by its place in the body."""

import pytest
from llm_dialects import DialectError
from llm_mock_server.wellformed import check_call

HI = [{"role": "user", "content": "hi"}]
CONVERSATIONS = {
    "openai-chat": {"messages": HI},
    "openai-responses": {"input": "hi"},
    "anthropic-messages": {"messages": HI},
    "gemini": {"contents": HI},
}


@pytest.mark.parametrize("dialect", CONVERSATIONS)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": None}, "$.model: must be the name of a model, it is null"),
        ({"model": 5}, "$.model: must be the name of a model, it is 5"),
        ({"model": ""}, "$.model: must be the name of a model, it is ''"),
        ({"stream": "yes"}, "$.stream: must be true or false, it is 'yes'"),
        ({"stream": 1}, "$.stream: must be true or false, it is 1"),
        ({"messages": 5, "input": 5, "contents": 5}, ", it is 5"),
        ({"messages": None, "input": None, "contents": None}, ", it is null"),
    ],
)
def test_what_no_provider_would_answer_is_refused_by_its_place(dialect, changes, words):
    with pytest.raises(DialectError) as caught:
        check_call(dialect, {"model": "m"} | CONVERSATIONS[dialect] | changes)
    assert words in str(caught.value)


@pytest.mark.parametrize(("dialect", "members"), CONVERSATIONS.items())
@pytest.mark.parametrize("more", [{}, {"stream": None}, {"stream": False}, {"stream": True}])
def test_a_call_in_due_form_is_one(dialect, members, more):
    check_call(dialect, {"model": "m"} | members | more)
    with pytest.raises(DialectError, match=r"\$\.model: must be the name of a model, it is missing"):
        check_call(dialect, members)
    with pytest.raises(DialectError, match=rf"\$\.{next(iter(members))}: must be an? .*, it is missing"):
        check_call(dialect, {"model": "m"})


@pytest.mark.parametrize("known", ["previous_response_id", "conversation", "prompt"])
def test_a_conversation_may_be_one_that_the_provider_knows(known):
    check_call("openai-responses", {"model": "m", known: "x_1"})
    with pytest.raises(DialectError, match="input"):
        check_call("openai-responses", {"model": "m", known: "x_1", "input": 5})


def test_of_a_dialect_that_nobody_knows_only_what_all_have_is_checked():
    check_call("own", {"model": "m"})
