import doctest
import re
from pathlib import Path

import llm_dialects

PACKAGE = Path(__file__).parent.parent


def test_the_example_runs():
    failures, tests = doctest.testfile(str(PACKAGE / "README.md"), module_relative=False, encoding="utf-8")
    assert (failures, tests > 0) == (0, True)


def test_the_table_lists_every_module():
    rows = re.findall(r"^\| `([a-z_]+)\.py`", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    modules = {path.stem for path in Path(llm_dialects.__file__).parent.glob("*.py")}
    assert sorted(rows) == sorted(modules - {"__init__"})


def test_every_public_name_is_there():
    assert sorted(llm_dialects.__all__) == sorted(set(llm_dialects.__all__))
    assert all(hasattr(llm_dialects, name) for name in llm_dialects.__all__)
