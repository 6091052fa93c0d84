from llm_dialects import TextDelta
from llm_dialects.memo import KEPT, MAX_ALL, MAX_EACH, MEMORY, remembered

ONE, OTHER = (TextDelta(index=0, text="one"),), (TextDelta(index=0, text="other"),)


def counted():
    asked = []

    def text(chunks):
        """Text."""
        asked.append(chunks)
        return "".join(chunk.text for chunk in chunks)

    return remembered(text), asked


def test_the_same_answer_is_computed_once():
    text, asked = counted()
    assert [text(ONE), text(OTHER), text(ONE), text(OTHER)] == ["one", "other", "one", "other"]
    assert asked == [ONE, OTHER]
    assert text.__doc__ == "Text."


def test_only_a_tuple_cannot_change_meanwhile():
    text, asked = counted()
    chunks = list(ONE)
    assert text(chunks) == "one"
    chunks += OTHER
    assert text(chunks) == text(iter(chunks)) == "oneother"
    assert len(asked) == 3


def test_what_is_remembered_is_bounded_and_never_taken_for_another():
    text, asked = counted()
    for number in range(3 * KEPT):
        assert text((TextDelta(index=0, text=str(number)),)) == str(number)
    last = asked[-1]
    assert text(last) == str(3 * KEPT - 1)
    assert len(asked) == 3 * KEPT
    assert text(asked[0]) == "0"
    assert len(asked) == 3 * KEPT + 1


def test_a_large_answer_is_not_kept():
    text, asked = counted()
    large = (TextDelta(index=0, text="x" * MAX_EACH),)
    before = MEMORY.weight
    assert text(large) == text(large)
    assert asked == [large, large]
    assert MEMORY.weight == before


def test_what_all_functions_remember_is_bounded_together():
    text, asked = counted()
    other, _ = counted()
    many = [(TextDelta(index=0, text="y" * (MAX_EACH // 2)),) for _ in range(30)]
    for answer in many:
        assert text(answer) == other(answer) == answer[0].text
        assert MEMORY.weight <= MAX_ALL
    asked.clear()
    text(many[-1])
    assert asked == []
    text(many[0])
    assert asked == [many[0]]
