import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import RenderError, expand
from llm_replay.tokens import Tokens

PLACES = {"cwd": "/home/me/work", "home": "/home/me", "tmp": "/tmp"}


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("in /home/me/work/a.txt", "in {{cwd}}/a.txt"),
        ("in /home/me/other", "in {{home}}/other"),
        ("/home/me/worker /tmpfs /tmp", "{{home}}/worker /tmpfs {{tmp}}"),
        ("say {{cwd}}", "say {{{{cwd}}"),
        ("nothing", "nothing"),
    ],
)
def test_places_are_hidden_and_braces_escaped(text, hidden):
    tokens = Tokens(PLACES)
    assert tokens.hide(text) == hidden
    assert expand(hidden, tokens.lookup) == text


@given(st.text("{}/ amoehtpr", max_size=20))
@settings(deadline=None, max_examples=100)
def test_hiding_and_expanding_give_the_text_back(text):
    tokens = Tokens({"cwd": "/home/{me}", "tmp": "/t"})
    assert expand(tokens.hide(text), tokens.lookup) == text


def test_what_a_token_stands_for_is_learned_from_the_request():
    tokens = Tokens(PLACES)
    recorded = {"messages": [{"text": "in {{cwd}} as {{sessionId:1}} (job {{uuid:2}})"}, "more", 1]}
    tokens.learn(recorded, {"messages": [{"text": "in /home/me/work as s-9 (job j.7)"}]})
    assert expand("{{sessionId:1}} {{uuid:2}} {{cwd}}", tokens.lookup) == "s-9 j.7 /home/me/work"


def test_what_was_learned_first_stays_and_other_texts_teach_nothing():
    tokens = Tokens({})
    tokens.learn(["id {{a:1}} {{a:1}}", "id {{a:1}}", "no {{b:1}}"], ["id x y", "id z", "yes z"])
    assert tokens.lookup("a:1") == "x"
    with pytest.raises(RenderError, match="b:1"):
        tokens.lookup("b:1")


@pytest.mark.parametrize(
    ("recorded", "live", "same"),
    [
        ("a {{cwd}}", "a /home/me/work", True),
        ("a {{cwd}}", "a /elsewhere", False),
        ("id {{uuid}}.", "id 4.", True),
        ("id {{uuid}}.", "id .", False),
        ("say {{{{cwd}}", "say {{cwd}}", True),
        ("say {{{{cwd}}", "say /home/me/work", False),
        (1, 1.0, True),
        (1, True, False),
        ("1", 1, False),
    ],
)
def test_a_recorded_leaf_is_the_live_one_but_for_its_tokens(recorded, live, same):
    tokens = Tokens(PLACES)
    assert tokens.same(recorded, tokens.hide(live) if isinstance(live, str) else live) is same
