"""Clients in a forked child, where no gRPC is at work that could spoil the fork itself."""

import gc
import os
import subprocess
import sys
import time

import pytest

from cardkeeper_client import Cardkeeper, CardkeeperAsync, ClosedError, ForkedError, fork
from cardkeeper_client.need import Need
from client_values import resolution

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


FORKING = """
import os
from cardkeeper_client import fork

class Told:
    disowned = False
    def disown(self):
        self.disowned = True

told = Told()
fork.guard(told, Told.disown)
child = os.fork()
if not child:
    os._exit(7 if told.disowned else 1)
assert not told.disowned
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_what_is_guarded_is_disowned_in_the_child_and_not_in_the_parent() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "7\n"


def test_a_client_that_is_gone_is_forgotten() -> None:
    before = len(fork._clients)
    client = Cardkeeper("127.0.0.1:1")
    client.close()
    assert len(fork._clients) == before + 1
    del client
    gc.collect()
    assert len(fork._clients) == before


def remembering(client: Cardkeeper | CardkeeperAsync) -> Need:
    """Let a client hold an answer, as if its stream had come in sync."""
    need = Need("http://a.example", "s")
    client._session.heard(time.monotonic())
    client._cache.synced("1")
    client._cache.keep(client._cache.ask(), need, resolution("agents/a"), time.monotonic() + 60)
    return need


def test_a_disowned_client_answers_nothing_any_more() -> None:
    client = Cardkeeper("127.0.0.1:1")
    need = remembering(client)
    assert client.resolve(need.agent, need.skill_id).agent == "agents/a"
    client._disown()
    assert not client.in_sync
    for ask in (client.resolve, client.call):
        with pytest.raises(ForkedError):
            ask(need.agent, need.skill_id, *([print] if ask == client.call else []))
    with pytest.raises(ForkedError):
        client.find("x")
    client.close()  # of a channel that is the parent's: nothing happens
    client._channel.close()


async def test_a_disowned_client_of_asyncio_answers_nothing_any_more() -> None:
    client = CardkeeperAsync("127.0.0.1:1")
    need = remembering(client)
    assert (await client.resolve(need.agent, need.skill_id)).agent == "agents/a"
    client._disown()
    assert not client.in_sync
    with pytest.raises(ForkedError):
        await client.resolve(need.agent, need.skill_id)
    await client.close()
    await client._channel.close()


def test_a_closed_client_says_that_it_is_closed() -> None:
    client = Cardkeeper("127.0.0.1:1")
    need = remembering(client)
    client.close()
    with pytest.raises(ClosedError):
        client.resolve(need.agent, need.skill_id)
    with pytest.raises(ClosedError):
        client.wait_until_in_sync()
