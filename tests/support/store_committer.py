"""A process that commits to a SQLite store in a loop and says what was acknowledged; its parent kills it.

    python store_committer.py FILE            commits until it is killed
    python store_committer.py FILE BYTES      lowers the file size limit until commits fail, then raises it again

One line a fact: "open EPOCH SEQUENCE", "ack SEQUENCE AGENT DIGEST DRIFT_NUMBER", "refused MESSAGE".
"""

import asyncio
import os
import resource
import sys
from dataclasses import replace

from cardkeeper.store.base import History, StoreUnavailable
from cardkeeper.store.sqlite import SqliteStore
from store_records import change_to, drift_of, held_sequence, removal

HISTORY = History(events=2_000, cards_per_agent=4, drift_records=50)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())  # at once, not when a buffer is full


async def commit_once(store: SqliteStore, turn: int) -> None:
    """A change, a removal or a touch; several agents, bodies of several pages."""
    agent = f"agent-{turn % 7}"
    expected = await held_sequence(store, agent)
    if expected and turn % 11 == 0:
        event = await store.commit(removal(agent, expected=expected))
        say("ack", event.sequence, agent, "-", 0)
        return
    digest = f"{os.getpid()}.{turn}"
    body = digest.encode() * (turn % 5 * 500 + 1)
    event = await store.commit(change_to(agent, digest, expected=expected, body=body))
    drift = await store.add_drift(replace(drift_of(agent), sequence=event.sequence))
    say("ack", event.sequence, agent, digest, drift.number)
    await store.touch(replace(await store.agent(agent), etag=digest))


async def main(path: str, limit: int) -> None:
    store = SqliteStore(path, HISTORY)
    image = await store.open()
    say("open", image.epoch, image.sequence)
    turn = 1
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            while True:
                await commit_once(store, turn)
                turn += 1
        except StoreUnavailable as error:
            say("refused", error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        for more in range(20):
            await commit_once(store, turn + more)
        await store.close()
        return
    while True:
        await commit_once(store, turn)
        turn += 1


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
