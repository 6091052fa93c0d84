"""The examples of the README run."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number):
    exec(compile(EXAMPLES[number], f"README.md, example {number}", "exec"), {})


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
