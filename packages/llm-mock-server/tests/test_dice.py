"""Dice throw the same for ever, in the shares they were given."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import EntryError
from llm_mock_server.behaviours import BEHAVIOURS
from llm_mock_server.dice import BITS, DEFAULT_WEIGHTS, Dice, next_uint32, seed_for, weights_from_json


def numbers(seed, count):
    state, found = seed, []
    for _ in range(count):
        state, number = next_uint32(state)
        found.append(number)
    return found


def check_refused(value, *words):
    with pytest.raises(EntryError) as caught:
        weights_from_json(value, "s.json: weights")
    for word in ("s.json: weights", *words):
        assert word in str(caught.value)


def test_the_numbers_are_mulberry32():
    # What the reference implementation in JavaScript gives for these seeds.
    assert numbers(0, 3) == [1144304738, 1416247, 958946056]
    assert numbers(1, 3) == [2693262067, 11749833, 2265367787]
    assert numbers(BITS, 1) == [3850105811]


def test_these_throws_never_change():
    dice = Dice(7, DEFAULT_WEIGHTS)
    assert [dice.throw() for _ in range(12)] == PINNED


def test_the_default_weights_are_shares_of_a_hundred():
    assert sum(DEFAULT_WEIGHTS.values()) == 100
    assert set(DEFAULT_WEIGHTS) <= set(BEHAVIOURS)
    assert weights_from_json(DEFAULT_WEIGHTS, "x") == DEFAULT_WEIGHTS


def test_the_throws_follow_the_shares():
    dice = Dice(1, DEFAULT_WEIGHTS)
    thrown = Counter(dice.throw() for _ in range(20_000))
    assert set(thrown) == set(DEFAULT_WEIGHTS)
    for name, share in DEFAULT_WEIGHTS.items():
        assert abs(thrown[name] / 200 - share) < 1, name


def test_what_weighs_nothing_is_never_thrown():
    dice = Dice(3, {"empty": 0, "success": 0.25, "stall": 0})
    assert {dice.throw() for _ in range(200)} == {"success"}


def test_only_the_low_bits_of_a_seed_count():
    assert Dice(2**32 + 5, DEFAULT_WEIGHTS).seed == 5
    assert Dice(-1, DEFAULT_WEIGHTS).seed == BITS


def test_keys_have_seeds_of_their_own():
    assert seed_for(int.from_bytes(b"foob", "little"), "ar") == 0xBF9CF968  # FNV-1a's own test vector, "foobar"
    assert len({seed_for(seed, key) for seed in (1, 2) for key in ("a", "b", "ä", "\ud800")}) == 8


@pytest.mark.parametrize("weights", [{}, {"success": 0}])
def test_dice_of_nothing(weights):
    with pytest.raises(ValueError, match="above zero"):
        Dice(1, weights)


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, BITS),
    weights=st.dictionaries(st.sampled_from(list(BEHAVIOURS)), st.floats(1e-300, 1e300), min_size=1, max_size=5),
)
def test_any_dice_throw_what_they_hold_and_throw_it_again(seed, weights):
    first, second = Dice(seed, weights), Dice(seed, weights)
    thrown = [first.throw() for _ in range(20)]
    assert set(thrown) <= set(weights)
    assert thrown == [second.throw() for _ in range(20)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, ["an object"]),
        ([], ["an object"]),
        ({}, ["above zero"]),
        ({"success": 0, "stall": 0.0}, ["above zero"]),
        ({"sucess": 1}, ["'sucess'", "'success'"]),
        ({"random": 1}, ["'random'", "drawn"]),
        ({"connection_refused": 1}, ["'connection_refused'", "drawn"]),
        ({"success": -1}, [".success", "-1"]),
        ({"success": float("nan")}, [".success", "finite"]),
        ({"success": float("inf")}, [".success", "finite"]),
        ({"success": 10**400}, [".success", "finite"]),
        ({"success": True}, [".success", "a number"]),
        ({"success": "1"}, [".success", "a number"]),
        ({"success": None}, [".success", "a number"]),
        ({"success": 1e308, "stall": 1e308}, ["add up"]),
    ],
)
def test_weights_that_are_none(value, words):
    check_refused(value, *words)


PINNED = [
    *("success", "success", "service_unavailable", "connection_reset", "slow_success", "success", "success"),
    *("success", "slow_success", "connection_reset", "success", "success"),
]
