"""The official SDKs behind the recorder: for every behaviour the same as without it, by the table that tells what they
do (``llm-mock-server/tests/sdk_table``): the same pieces, result, exception with its status and words."""

import importlib.util
from pathlib import Path

import httpx
import pytest
from llm_mock_server import serve_in_thread
from session_snapshot.recording.recorder import RecordModel

JUDGE = Path(__file__).parents[2] / "llm-mock-server" / "tests" / "test_sdk_table.py"
KEY = "the real key"


def loaded(path):
    spec = importlib.util.spec_from_file_location("sdk_table_judge", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


judge = loaded(JUDGE)


class Behind:
    """A provider, recorders before it for its base URLs, and an SDK each behind a recorder and without one."""

    def __init__(self, provider, stack):
        self.provider, self.stack, self.drivers, self.models = provider, stack, {}, {}

    def driver(self, dialect, *, recorded):
        if (dialect, recorded) not in self.drivers:
            base = self.provider.base_url(dialect)
            if recorded:
                # No connection outlives its call: the loop it belongs to ends with the server's thread.
                client = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
                self.models[dialect] = model = RecordModel(client, base, KEY)
                base = self.stack(model).base_url(dialect)
            self.drivers[dialect, recorded] = Counting(judge.DRIVERS[dialect](base))
        return self.drivers[dialect, recorded]


class Counting:
    """An SDK's driver that counts what a stream yields, whatever is made of it."""

    def __init__(self, driver):
        self.driver, self.plain, self.count = driver, driver.things, 0
        driver.things = self.things

    def things(self, answer, hurry):
        for thing in self.plain(answer, hurry):
            self.count += 1
            yield thing

    def run(self, **asked):
        self.count = 0
        return self.driver.run(**asked), self.count


@pytest.fixture(scope="module")
def behind():
    opened = []

    def serve(model):
        opened.append(serve_in_thread(model))
        return opened[-1].__enter__()

    with serve_in_thread(lambda http: behind.script(http)) as provider:
        behind = Behind(provider, serve)
        yield behind
        for counting in behind.drivers.values():
            counting.driver.client.close()
        for front in opened:
            front.__exit__(None, None, None)


ROWS = [row for row in judge.rows() if row.values[1] != "connection_refused"]
REFUSED = [row for row in judge.rows() if row.values[1] == "connection_refused"]


@pytest.mark.parametrize(("dialect", "name", "mode", "row"), ROWS)
def test_an_sdk_sees_no_difference(behind, dialect, name, mode, row):
    seen = []
    for recorded in (False, True):
        behind.script = judge.provider(name)
        driver = behind.driver(dialect, recorded=recorded)
        seen.append(driver.run(streamed=mode == "stream", hurry=name == "stall"))
        behind.provider.wait(lambda: behind.provider.in_flight == 0)
        assert behind.script.remaining == 0
    assert seen[1] == seen[0]
    assert seen[1][0] == judge.expected(row)


@pytest.mark.parametrize(("dialect", "name", "row"), list(judge.finished()))
def test_what_an_sdks_own_reader_adds_up_to_is_the_same(behind, dialect, name, row):
    behind.script = judge.provider(name)
    assert behind.driver(dialect, recorded=True).driver.run_helper() == row


@pytest.mark.parametrize(("dialect", "name", "mode", "row"), REFUSED)
def test_a_provider_that_does_not_listen_is_a_connection_that_is_lost(dialect, name, mode, row):
    """The one difference: a recorder listens, also for a provider that does not. (Its recording is refused.) The SDKs
    of OpenAI and Anthropic have one exception for both."""
    client = httpx.AsyncClient(trust_env=False)
    with serve_in_thread(judge.provider(name), listen=False) as provider:
        model = RecordModel(client, provider.base_url(dialect), KEY)
        with serve_in_thread(model) as front:
            driver = judge.DRIVERS[dialect](front.base_url(dialect))
            got = driver.run(streamed=mode == "stream", hurry=False)
            driver.client.close()
    wanted = judge.expected(row)
    assert model.calls[0].entry.code == "UNREACHABLE"
    assert got == (wanted | {"raises": judge.resolve_name("httpx2:ReadError")} if dialect == "gemini" else wanted)
