"""More clients than the system has room for."""

import contextlib
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the bound on open files is POSIX's")

LIMIT = 40
CHILD = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, {LIMIT}))
from llm_mock_server.__main__ import main
sys.exit(main(["--sequence", "success", "--repeat-last"]))
"""


@contextlib.contextmanager
def short_of_files():
    """A server that may open ``LIMIT`` files, its stderr a pipe that nobody reads; and its URL."""
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().partition('"baseURL":"')[2].partition("/v1")[0]
        finally:
            process.kill()


def crowd(dial, url, post):
    """Connect until nobody is let in any more: the first who is not answered waits."""
    clients = [dial(url) for _ in range(2 * LIMIT)]
    for client in clients:
        client.socket.settimeout(1)
        client.send(post())
    with pytest.raises(TimeoutError):
        for client in clients:
            client.read_head()
    return clients


def test_whoever_has_no_room_waits_until_others_leave(dial, post):
    with short_of_files() as (process, url):
        for _ in range(2):
            clients = crowd(dial, url, post)
            for client in clients:
                client.close()
            late = dial(url)
            late.send(post())
            assert late.read_head().startswith("HTTP/1.1 200 ")
            late.close()
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=20)
        assert process.returncode == 143
        assert "clients must wait: Too many open files\nmend: close connections" in told
        assert 1 <= told.count("clients must wait") <= 4
        assert "Traceback" not in told


def test_the_end_can_be_called_for_while_there_is_no_room(dial, post):
    with short_of_files() as (process, url):
        crowd(dial, url, post)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 143
