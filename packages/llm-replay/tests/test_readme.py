import doctest
import re
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def test_the_example_does_what_it_shows():
    failures, tests = doctest.testfile(str(PACKAGE / "README.md"), module_relative=False, encoding="utf-8")
    assert (failures, tests > 5) == (0, True)


def test_every_module_with_an_idea_of_its_own_is_in_the_table():
    text = (PACKAGE / "README.md").read_text("utf-8")
    named = set(re.findall(r"^\| `(\w+)\.py`", text, re.MULTILINE))
    modules = {path.stem for path in (PACKAGE / "src" / "llm_replay").glob("*.py")}
    assert named == modules - {"__init__", "errors", "lines", "calls"}
