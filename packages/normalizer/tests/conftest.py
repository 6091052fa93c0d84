"""Foreign cases are read where they are, never copied."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("normalizer", deadline=None, max_examples=80)
settings.load_profile("normalizer")


@pytest.fixture(scope="session")
def acp() -> Path:
    folder = os.environ.get("SNAPSHOT_CASES")
    if not folder:
        pytest.skip("SNAPSHOT_CASES is not set: no foreign cases here")
    return Path(folder) / "acp"
