"""``scenario.toml``: a closed file whose ``[expect]`` can fail."""

import pytest
from session_snapshot.errors import FixtureError
from session_snapshot.scenario import Expect, asserts_something, parse_scenario

HEAD = 'description = "d"\nrecording = "live"\n'


def test_defaults() -> None:
    scenario = parse_scenario(HEAD + "[expect]\nmodel_calls = 1\n", "s")
    assert (scenario.seam, scenario.overridden, scenario.header.class_, scenario.workspace.final) == (
        "wire", False, "default", False,
    )  # fmt: skip
    assert scenario.expect == Expect(model_calls=1)
    assert scenario.expect.exit_codes == [0]


@pytest.mark.parametrize(
    ("expect", "something"),
    [
        (Expect(), False),
        (Expect(tools_called=[]), False),
        (Expect(tools_not_called=["bash"]), False),
        (Expect(exit_codes=[1]), False),
        (Expect(error_codes=[]), False),
        (Expect(model_calls=0), True),
        (Expect(tools_called=["bash"]), True),
        (Expect(answer_contains=["x"]), True),
        (Expect(stop_reason="end_turn"), True),
        (Expect(error_codes=["AUTH"]), True),
        (Expect(compactions=1), True),
    ],
)
def test_what_asserts_something(expect: Expect, something: bool) -> None:
    assert asserts_something(expect) is something


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD, "[expect] asserts nothing"),
        (HEAD + "[expect]\nanswer_contains = []\n", "s:3: [expect] asserts nothing"),
        (HEAD + "[expect]\nmodel_calls = 1\nanswer_contain = []\n", "s:5: unknown key 'answer_contain'"),
        (HEAD + 'seam = "wires"\n', "s:3: unknown value 'wires'"),
        (HEAD + '[expect]\nstop_reason = "end_trun"\n', "write 'end_turn'"),
        (
            HEAD + 'platforms = ["linux", "windws"]\n',
            "s:3: unknown value 'windws' at $.platforms[1]\nmend: one of: darwin, ",
        ),
        ('description = "d"\n', "missing required field `recording`"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(FixtureError) as caught:
        parse_scenario(text, "s")
    assert said in str(caught.value)
