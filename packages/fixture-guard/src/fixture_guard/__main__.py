"""Shell: the command ``fixture-guard``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fixture_guard.finding import Finding, render
from fixture_guard.guard import check, checks_table
from fixture_guard.tree import read_files, suites_folder, surroundings

CLEAN, FINDINGS, USAGE = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 clean, 1 findings, 2 wrong usage."""
    arguments = parser().parse_args(argv)
    if arguments.checks:
        sys.stdout.write(checks_table())
        return CLEAN
    path = Path(arguments.path)
    if not path.is_dir():
        return usage(f"{path} is not a folder", "name the folder of suites, a suite or a scenario (default: snapshots)")
    root = suites_folder(path.resolve())
    if unfinished(root):
        what = f"a command that writes into {path} was interrupted, and its files are swapped in half"
        return usage(what, "nox -s snapshot finishes it (as does every other command of session-snapshot)")
    files = read_files(root)
    suites = sorted(name.partition("/")[0] for name in files if name.count("/") == 1 and name.endswith("/agent.toml"))
    if not suites:
        return usage(f"no suite in {path}: no folder in it has an agent.toml", "name the folder of suites")
    under = path.resolve().relative_to(root).as_posix()
    found = check(files, surroundings(), under="" if under == "." else under)
    shown = [msgspec.structs.replace(finding, path=shown_path(root, finding)) for finding in found]
    sys.stdout.write(render(shown, arguments.format))
    sys.stderr.write(f"fixture-guard: {len(found)} findings in {', '.join(suites)} ({len(files)} files)\n")
    return FINDINGS if found else CLEAN


def unfinished(root: Path) -> bool:
    """Whether the harness left the journal of a swap beside the folder of suites (session_snapshot.staging)."""
    return any((root.parent / ".snapshot-staging").glob("*/journal.json"))


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    grammar = argparse.ArgumentParser("fixture-guard", description="Say what is wrong with committed fixtures.")
    grammar.add_argument("path", nargs="?", default="snapshots", help="the folder of suites, a suite or a scenario")
    grammar.add_argument("--format", choices=("human", "json", "github"), default="human", help="how findings are said")
    grammar.add_argument("--checks", action="store_true", help="print the table of checks as Markdown and stop")
    return grammar


def shown_path(root: Path, finding: Finding) -> str:
    """Return a finding's path as the reader types it: relative to where the command runs, if it can be."""
    path = root / finding.path
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def usage(what: str, mend: str) -> int:
    """Say what is wrong with the command line."""
    sys.stderr.write(f"fixture-guard: {what}\nmend: {mend}\n")
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
