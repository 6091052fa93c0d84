"""A lock made against an index on disk comes out host-free, and uv takes it offline."""

import os
import tomllib

import pytest

from ci.lock import LockError, hide_wheelhouse, host_free, online, relock, write_closures
from ci.lock_purity import check, read_subject
from ci.projects import offline, projects, registry

WHEELHOUSE = """
[[tool.uv.index]]
name = "wheelhouse"
url = "{path}"
format = "flat"
default = true
"""
ROOT = """
[project]
name = "root"
version = "0"
requires-python = ">=3.11"
dependencies = []

[dependency-groups]
tests = ["member"]
tools = ["thing"]

[tool.uv]
package = false

[tool.uv.workspace]
members = ["packages/*"]

[tool.uv.sources]
member = { workspace = true }
"""
MEMBER = """
[project]
name = "member"
version = "0.1"
requires-python = ">=3.11"
dependencies = ["thing"]

[build-system]
requires = ["uv_build>=0.9,<0.14"]
build-backend = "uv_build"
"""
AGENT = """
[project]
name = "agent"
version = "0"
requires-python = ">=3.11"
dependencies = ["thing<2"]

[tool.uv]
package = false
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch, make_wheel):
    """A workspace and an agent's project, and uv configured for an index of two versions of one package."""
    index = tmp_path / "index" / "thing"
    links = [make_wheel(index, "thing", version) for version in ("1.0", "2.0")]
    page = "".join(f'<a href="{name}#sha256={sha256}">{name}</a>' for name, sha256 in links)
    (index / "index.html").write_text(f"<!DOCTYPE html><html><body>{page}</body></html>", encoding="utf-8")
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "index").as_uri())
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    files = {
        "pyproject.toml": ROOT + WHEELHOUSE.format(path="./wheelhouse"),
        "packages/member/pyproject.toml": MEMBER,
        "snapshots/agent/pyproject.toml": AGENT + WHEELHOUSE.format(path="../../wheelhouse"),
    }
    for name, text in files.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "checkout"


def version_of_thing(project):
    lock = tomllib.loads((project / "uv.lock").read_text(encoding="utf-8"))
    return next(package["version"] for package in lock["package"] if package["name"] == "thing")


def test_locks_are_pure_and_uv_takes_them_offline(workspace):
    (workspace / "ci").mkdir()
    (workspace / "ci" / "tools.txt").write_text("thing==2.0\n", encoding="utf-8")
    for project in projects(workspace):
        relock(project, workspace)
    write_closures(workspace)
    assert [version_of_thing(project) for project in projects(workspace)] == ["2.0", "1.0"]
    assert [finding for project in projects(workspace) for finding in check(read_subject(project, workspace))] == []
    assert sorted(path.stem for path in (workspace / "ci" / "closures").iterdir()) == ["agent", "tests", "tools"]


def test_a_locked_version_stays_until_an_upgrade_is_asked_for(workspace):
    agent = workspace / "snapshots" / "agent"
    pyproject = agent / "pyproject.toml"
    relock(agent, workspace)
    pyproject.write_text(pyproject.read_text(encoding="utf-8").replace("thing<2", "thing"), encoding="utf-8")
    relock(agent, workspace)
    assert version_of_thing(agent) == "1.0"
    relock(agent, workspace, ["--upgrade"])
    assert version_of_thing(agent) == "2.0"


def test_a_failure_leaves_the_lock_as_it_was(workspace):
    agent = workspace / "snapshots" / "agent"
    relock(agent, workspace)
    before = (agent / "uv.lock").read_bytes()
    pyproject = agent / "pyproject.toml"
    pyproject.write_text(pyproject.read_text(encoding="utf-8").replace("thing<2", "thing>2"), encoding="utf-8")
    with pytest.raises(LockError, match=r"`uv lock` failed:(.|\n)*mend: "):
        relock(agent, workspace)
    assert (agent / "uv.lock").read_bytes() == before


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('source = { registry = "https://host/simple" }', 'source = { registry = "w" }'),
        ('{ url = "https://host/a/b/c-1.whl", hash = "x" }', '{ path = "c-1.whl", hash = "x" }'),
        ('{ url = "file:///mnt/c-1%2Bcpu.whl#frag", hash = "x" }', '{ path = "c-1+cpu.whl", hash = "x" }'),
        ('source = { registry = "../index" }', 'source = { registry = "w" }'),
        ('{ path = "thing/c-1.whl", hash = "x" }', '{ path = "c-1.whl", hash = "x" }'),
        ('source = { path = "vendored/c-1.whl" }', 'source = { path = "vendored/c-1.whl" }'),
        ('source = { editable = "packages/x" }', 'source = { editable = "packages/x" }'),
    ],
)
def test_urls_become_file_names(line, expected):
    assert host_free(line, "w") == expected


def test_a_source_that_stays_a_url_is_refused_with_its_line():
    with pytest.raises(LockError, match=r"uv\.lock:2: .*git"):
        host_free('\nsource = { git = "https://host/x?rev=1#abc" }', "w")


def test_only_the_index_tables_are_hidden(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[a]\nb = 1\n" + WHEELHOUSE + "[c]\nd = [2]\n", encoding="utf-8")
    hide_wheelhouse(tmp_path / "pyproject.toml")
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8")) == {"a": {"b": 1}, "c": {"d": [2]}}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"UV_OFFLINE": "1", "PIP_INDEX_URL": "pip's"}, {"UV_DEFAULT_INDEX": "pip's"}),
        ({"UV_DEFAULT_INDEX": "uv's", "PIP_INDEX_URL": "pip's"}, {"UV_DEFAULT_INDEX": "uv's"}),
        ({"UV_INDEX_URL": "uv's", "PIP_INDEX_URL": "pip's"}, {"UV_INDEX_URL": "uv's"}),
    ],
)
def test_locking_goes_where_uv_or_else_pip_is_configured_to_go(environment, expected):
    found = online(environment)
    assert {name: found[name] for name in found if "INDEX" in name and name != "PIP_INDEX_URL"} == expected
    assert "UV_OFFLINE" not in found


def test_offline_forgets_every_other_index():
    assert offline({"UV_INDEX": "x", "UV_FIND_LINKS": "y", "PATH": "p"}) == {
        "PATH": "p",
        "UV_OFFLINE": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }


def test_the_wheelhouse_is_named_by_a_relative_path(tmp_path):
    assert registry(tmp_path, tmp_path) == "wheelhouse"
    assert registry(tmp_path / "snapshots" / "agent", tmp_path) == "../../wheelhouse"
