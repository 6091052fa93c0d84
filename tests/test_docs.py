"""What README and CONTRIBUTING say is run here: the suite they show is recorded and replayed, the commands exist."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ci.projects import ROOT

FILE = re.compile(r"`(snapshots/[^`]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"nox -s (\w+)((?: -- [^#`|\n]*)?)")
KEY = "sk-a-key-of-the-readme-0123456789"


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the harness's command in a folder, as a user without CI would."""
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "OPENAI_API_KEY", "SNAPSHOT_MODE")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "session_snapshot", *arguments],
        cwd=folder,
        env=env | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def write_readme_suite(folder: Path) -> None:
    """Write the files that README shows."""
    shown = FILE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(shown) == 4
    for name, text in shown:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_the_suite_of_the_readme_is_recorded_guarded_and_replayed(tmp_path: Path) -> None:
    write_readme_suite(tmp_path)

    refused = run(tmp_path, "record", "hello/greeting")
    recorded = run(tmp_path, "record", "hello/greeting", OPENAI_API_KEY=KEY)
    replayed = run(tmp_path, "replay", "hello/greeting")
    guarded = subprocess.run(
        [sys.executable, "-m", "fixture_guard", "snapshots"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (refused.returncode, "OPENAI_API_KEY is not set" in refused.stderr) == (2, True)
    assert recorded.returncode == 0, recorded.stderr
    assert (replayed.returncode, "1 passed" in replayed.stdout) == (0, True), replayed.stdout
    assert guarded.returncode == 0, guarded.stdout
    written = {path.name: path.read_bytes() for path in (tmp_path / "snapshots/hello/greeting").iterdir()}
    assert {
        "stdout.golden.jsonl",
        "session.jsonl",
        "requests.golden.jsonl",
        "header.system.md",
        "provenance.toml",
    } <= set(written)
    assert not [name for name, content in written.items() if KEY.encode() in content]


def test_the_suite_that_the_readme_has_made_by_commands_is_there_and_green(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    made, told = (shlex.split(found) for found in re.findall(r"nox -s snapshot_init -- (my-agent\S* --.*?) +#", text))

    suite = run(tmp_path, "init", *made, "--yes")
    scenario = run(tmp_path, "init", *told, "--answer", "PONG.")
    recorded = run(tmp_path, "record", told[0], OPENAI_API_KEY=KEY)
    replayed = run(tmp_path, "replay", "my-agent")

    assert suite.returncode == 0, suite.stderr
    assert scenario.returncode == 0, scenario.stderr
    assert recorded.returncode == 0, recorded.stderr
    assert (replayed.returncode, "2 passed" in replayed.stdout) == (0, True), replayed.stdout


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_every_command_of_a_page_names_a_session_that_exists(page: str) -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    sessions = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and "nox.session" in ast.unparse(node)
    } | {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}

    named = {name for name, _ in COMMAND.findall((ROOT / page).read_text(encoding="utf-8"))}

    assert named <= sessions


def test_every_flag_that_a_page_gives_to_replay_is_known() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "CONTRIBUTING.md"))
    helps = {
        "snapshot": run(ROOT, "replay", "--help").stdout,
        "snapshot_refresh": run(ROOT, "refresh", "--help").stdout,
        "snapshot_record": run(ROOT, "record", "--help").stdout,
        "snapshot_review": run(ROOT, "review", "--help").stdout,
        "snapshot_view": run(ROOT, "view", "--help").stdout,
        "snapshot_init": run(ROOT, "init", "--help").stdout,
    }

    for session, arguments in COMMAND.findall(text):
        for flag in re.findall(r"--[a-z-]+", arguments.removeprefix(" --")):
            assert flag in helps[session], f"nox -s {session} -- {flag}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_every_file_that_a_page_links_to_is_there(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text(encoding="utf-8"))

    assert [link for link in links if not (ROOT / link).exists()] == []
