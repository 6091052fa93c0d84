"""What a committed fixture may look like."""

from fixture_guard.checks.headers import readable_json
from fixture_guard.digest import machine_digest, machine_files
from fixture_guard.finding import Finding, render
from fixture_guard.guard import CHECKS, Check, check, checks_table
from fixture_guard.surroundings import Surroundings
from fixture_guard.tree import read_files, suites_folder, surroundings

__all__ = [
    "CHECKS",
    "Check",
    "Finding",
    "Surroundings",
    "check",
    "checks_table",
    "machine_digest",
    "machine_files",
    "read_files",
    "readable_json",
    "render",
    "suites_folder",
    "surroundings",
]
