"""Which files of a scenario a machine writes, and their digest, so that an edit by hand shows."""

import re
from collections.abc import Mapping
from hashlib import sha256

MACHINE_WRITTEN = re.compile(r"session(\.\d+)?\.jsonl|[^/]+\.golden\.jsonl|header\.system\.md|header\.tools\.json")
OVERRIDE = "replay.override.json"


def machine_files(files: Mapping[str, bytes], recording: str) -> dict[str, bytes]:
    """Return those of a scenario's files (names relative to its folder) that the harness writes.

    ``replay.override.json`` is written by a recording (failures and cancels), and by a person where
    ``recording = "authored"``.
    """
    return {
        name: data
        for name, data in files.items()
        if MACHINE_WRITTEN.fullmatch(name) or (name == OVERRIDE and recording != "authored")
    }


def machine_digest(files: Mapping[str, bytes]) -> str:
    """Return the digest of ``files`` in lower-case hex, as ``provenance.toml`` holds it.

    sha256 over, for each file in the order of its name, the name, a NUL, the sha256 of its bytes in hex, and a LF.
    Pass what ``machine_files`` returns.
    """
    total = sha256()
    for name in sorted(files):
        total.update(f"{name}\0{sha256(files[name]).hexdigest()}\n".encode())
    return total.hexdigest()
