"""The command line of a new suite's agent: split as the system's shell does, found, and written for other machines."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from session_snapshot.errors import Refused
from session_snapshot.init.command import AGENT, read_command, split_command

SUITE = Path("snapshots/mine")
PYTHON = Path(sys.executable).name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("my-agent --acp", ["my-agent", "--acp"]),
        ("  my-agent\t--acp  ", ["my-agent", "--acp"]),
        (r"C:\tools\agent.exe --acp", [r"C:\tools\agent.exe", "--acp"]),
        (r'"C:\Program Files\agent\agent.exe" --acp', [r"C:\Program Files\agent\agent.exe", "--acp"]),
        (r'node "C:\my agents\a.js" --dir="D:\x y"', ["node", r"C:\my agents\a.js", r"--dir=D:\x y"]),
        (r'a "ends in a slash\\" b', ["a", "ends in a slash\\", "b"]),
        (r'a "say \"hi\"" c', ["a", 'say "hi"', "c"]),
        (r'a "say ""hi""" c', ["a", 'say "hi"', "c"]),
        (r"a \\server\share \ b", ["a", r"\\server\share", "\\", "b"]),
        ('a "" b', ["a", "", "b"]),
        ("a 'b c'", ["a", "'b", "c'"]),
        (r'a\\"b c"', ["a\\b c"]),
        (r"a\\\"b", ['a\\"b']),
        ("", []),
        ("   ", []),
    ],
)
def test_windows_rules(text: str, parts: list[str]) -> None:
    assert split_command(text, windows=True) == parts


@pytest.mark.parametrize("text", ["my-agent --acp", "a 'b c' \"d e\"", r"a b\ c", "a ''"])
def test_posix_rules_are_the_shells(text: str) -> None:
    assert split_command(text, windows=False) == shlex.split(text)


@pytest.mark.parametrize("windows", [True, False])
def test_a_quote_that_is_not_closed(windows: bool) -> None:
    with pytest.raises(Refused, match="cannot be split: No closing quotation\nmend: close the quote"):
        split_command('a "b', windows)


def test_windows_rules_are_those_that_list2cmdline_writes_for() -> None:
    """The standard library writes command lines for the same rules."""
    from subprocess import list2cmdline

    for parts in (["a", "b c"], ['say "hi"', "c:\\x\\"], ["", "a\\", 'b"c d\\\\'], ["\\\\server\\a b\\", 'x\\"y']):
        assert split_command(list2cmdline(parts), windows=True) == parts


# ── found, and written ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the command runs in: a script, a program and a folder."""
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("my-agent", "my-agent.bat"):
        (programs / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    (tmp_path / "agent.py").write_text("", encoding="utf-8")
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    monkeypatch.setenv("PATH", path)
    return tmp_path


def test_a_program_of_the_path_stays_as_it_is(here: Path) -> None:
    command = read_command("my-agent --acp", SUITE)
    assert (command.parts, command.install, command.relative) == (("my-agent", "--acp"), "none", ())


def test_a_program_of_this_environment_is_the_workspaces(here: Path) -> None:
    assert read_command(f"{PYTHON} -m json.tool", SUITE).install == "workspace"


@pytest.mark.parametrize("text", ["agent.py", "./agent.py", "{here}/agent.py"])
def test_a_file_of_this_folder_is_named_from_the_suite(here: Path, text: str) -> None:
    """The agent runs in a folder of its own, and on other machines this one lies elsewhere."""
    command = read_command(f"{PYTHON} {text.format(here=here.as_posix())} --acp", SUITE)
    assert command.parts == (PYTHON, f"{AGENT}/../../agent.py", "--acp")
    assert (command.install, command.relative) == ("none", (f"{AGENT}/../../agent.py",))


def test_a_file_in_the_suite_is_named_in_it(here: Path) -> None:
    (here / SUITE).mkdir(parents=True)
    (here / SUITE / "agent.mjs").write_text("", encoding="utf-8")
    assert read_command(f"{PYTHON} {SUITE}/agent.mjs", SUITE).parts[1] == f"{AGENT}/agent.mjs"


def test_a_program_of_this_folder(here: Path) -> None:
    program = "programs/my-agent.bat" if os.name == "nt" else "programs/my-agent"
    assert read_command(f"./{program} --acp", SUITE).parts == (f"{AGENT}/../../{program}", "--acp")


def test_a_word_that_happens_to_be_a_folder_is_no_file(here: Path) -> None:
    assert read_command("my-agent programs", SUITE).parts == ("my-agent", "programs")


def test_a_suite_with_a_lock_of_its_own(here: Path) -> None:
    (here / SUITE).mkdir(parents=True)
    (here / SUITE / "uv.lock").write_text("", encoding="utf-8")
    assert read_command("my-agent", SUITE).install == "uv"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["the command is empty", 'mend: give the program and its arguments, e.g. --command "my-agent --acp"']),
        ("my-agnt --acp", ["'my-agnt' was not found in the ", " folders of the PATH: ", "mend: write my-agent"]),
        ("qqqzzzqqq", ["'qqqzzzqqq' was not found", "mend: install it, or name its file, e.g. ./my-agent"]),
        ("agent.py", ["'agent.py' was not found", 'is named by its place: --command "./agent.py']),
        ("./lost --acp", ["the program './lost' is not there (looked for in {here})", "mend: name a file that is"]),
        ("./programs", ["the program './programs' is a folder"]),
    ],
)  # fmt: skip
def test_what_cannot_be_started_is_refused_at_once(here: Path, text: str, said: list[str]) -> None:
    with pytest.raises(Refused) as caught:
        read_command(text, SUITE)
    wanted = [part.format(here=here) for part in said]
    assert [part for part in wanted if part not in str(caught.value)] == [], str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="posix only: a file is executable by its mode")
def test_a_file_that_is_not_executable(here: Path) -> None:
    with pytest.raises(
        Refused, match=r'not executable\nmend: chmod \+x it, or name its interpreter: --command "python'
    ):
        read_command("./agent.py", SUITE)
