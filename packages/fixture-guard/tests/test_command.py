"""The command: exit codes, formats, where it looks."""

import json
import socket

import pytest
from fixture_guard.__main__ import main


@pytest.fixture
def folder(tmp_path, build, monkeypatch):
    """A clean tree on disk; the command runs beside it."""

    def write(changes):
        for path, data in build(changes).items():
            (tmp_path / "snapshots" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "snapshots" / path).write_bytes(data)
        return tmp_path

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    return write


def test_clean_is_zero(folder, capsys):
    folder({})
    assert main([]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (
            "human",
            "snapshots/s/one/workspace/notes.txt:1: PORT a fixed local port: localhost:8080\n    mend: listen on",
        ),
        (
            "github",
            "::error file=snapshots/s/one/workspace/notes.txt,line=1,title=PORT::a fixed local port: localhost:8080%0A",
        ),
    ],
)
def test_findings_are_one_and_said_with_their_mend(folder, capsys, form, said):
    folder({"s/one/workspace/notes.txt": "localhost:8080\n"})
    assert main(["--format", form]) == 1
    assert capsys.readouterr().out.startswith(said)


def test_json_is_for_programs(folder, capsys):
    folder({"s/one/workspace/notes.txt": "localhost:8080\n"})
    assert main(["snapshots", "--format", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["code"] == "PORT"
    assert finding["line"] == 1
    assert set(finding) == {"path", "line", "code", "what", "mend"}


def test_json_of_nothing_is_an_empty_list(folder, capsys):
    folder({})
    assert main(["--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("path", ["snapshots/s", "snapshots/s/one"])
def test_a_part_is_judged_with_its_suite(folder, path):
    root = folder({})
    assert main([path]) == 0
    (root / "snapshots/s/stray").mkdir()
    (root / "snapshots/s/stray/file").write_text("")
    assert main([path]) == (1 if path == "snapshots/s" else 0)


@pytest.mark.parametrize("arguments", [["nowhere"], ["empty"]])
def test_nothing_to_look_at_is_wrong_usage(folder, capsys, arguments):
    (folder({}) / "empty").mkdir()
    assert main(arguments) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("mend: ")


@pytest.mark.parametrize(("arguments", "code"), [(["--format", "xml"], 2), (["--help"], 0)])
def test_the_grammar(arguments, code):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == code


def test_what_is_never_committed_is_not_read(folder):
    root = folder({})
    for name in (".snapshot-actual/s/one/stdout.golden.jsonl", "s/.venv/lib/x.py", "s/one/__pycache__/x.pyc"):
        (root / "snapshots" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "snapshots" / name).write_bytes(b"")
    assert main([]) == 0


def test_the_table_can_be_printed(capsys):
    assert main(["--checks"]) == 0
    assert capsys.readouterr().out.startswith("| code | finds |")


def test_files_that_are_swapped_in_half_are_not_judged(folder, capsys):
    journal = folder({}) / ".snapshot-staging" / "s--a" / "journal.json"
    journal.parent.mkdir(parents=True)
    journal.write_text("{}", encoding="utf-8")
    assert main([]) == 2
    said = capsys.readouterr().err
    assert "swapped in half" in said and "mend: nox -s snapshot finishes it" in said
