"""The README tells of behaviours and options what the code says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from llm_mock_server.behaviours import BEHAVIOURS
from llm_mock_server.behaviours_table import BEGIN, END, behaviours_table
from llm_mock_server.options import DEFAULT, FIELDS, options_to_json

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("\n## Behaviours\n")[2].partition("\n## ")[0]


def test_the_readme_s_table_is_printed_from_the_code():
    told = README.partition(f"{BEGIN}\n")[2].partition(END)[0]
    assert told == behaviours_table(), f"mend: put the table between the marks of README.md: {BEGIN}"


def test_the_table_has_a_row_of_four_cells_for_each_behaviour():
    header, rule, *rows = behaviours_table().splitlines()
    assert rule == "|---|---|---|---|"
    assert [row.split(" | ")[0] for row in rows] == [f"| `{name}`" for name in BEHAVIOURS]
    assert {row.count("|") for row in (header, *rows)} == {5}


def test_the_module_prints_the_table():
    environment = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "PYTHONPATH") if name in os.environ}
    told = subprocess.run(
        [sys.executable, "-W", "error", "-m", "llm_mock_server.behaviours_table"],
        capture_output=True,
        env=environment,
        check=True,
        timeout=60,
    )
    assert told.stdout.decode() == behaviours_table()


@pytest.mark.parametrize("key", FIELDS)
def test_the_readme_tells_every_option(key):
    assert re.search(rf"^\|.*`{key}`.* \| ", SECTION, re.MULTILINE)


def test_the_readme_tells_the_defaults():
    for text in (DEFAULT.success_text, DEFAULT.partial_text, DEFAULT.reasoning_text):
        assert f'`"{text}"`' in SECTION
    for number in (DEFAULT.chunk_size, DEFAULT.chunk_delay_ms, DEFAULT.disconnect_delay_ms, DEFAULT.huge_bytes):
        assert f"| `{number}` |" in SECTION
    assert options_to_json(DEFAULT) == {}


def test_the_readme_says_what_is_left_out():
    assert "http2_goaway" not in BEHAVIOURS
    assert "`http2_goaway`" in SECTION
