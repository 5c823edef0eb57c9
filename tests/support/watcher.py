"""One invalidation stream, read with deadlines."""

import asyncio
from typing import Any

from cardkeeper.v1 import discovery_service_pb2 as pb
from cardkeeper.v1 import invalidation_pb2, revision_pb2
from running_service import Running

Frame = pb.WatchInvalidationsResponse


class Watcher:
    """A client that says what it is told to say, and reads one frame at a time."""

    def __init__(self, service: Running) -> None:
        self.call: Any = service.discovery.WatchInvalidations()

    async def say(self, *steps: pb.WatchInvalidationsRequest) -> None:
        """Send steps."""
        for step in steps:
            await self.call.write(step)

    async def next(self, kind: str = "", *, timeout: float = 5.0) -> Frame:
        """Read a frame, which must be of that kind."""
        frame = await asyncio.wait_for(self.call.read(), timeout)
        assert isinstance(frame, Frame), "the stream ended"
        assert not kind or frame.WhichOneof("event") == kind, frame
        return frame

    async def until(self, kind: str, *, timeout: float = 5.0) -> list[Frame]:
        """Read frames up to the first of that kind, which is the last returned."""
        frames = [await self.next(timeout=timeout)]
        while frames[-1].WhichOneof("event") != kind:
            frames.append(await self.next(timeout=timeout))
        return frames

    def close(self) -> None:
        """Give the call up; one that is merely forgotten would leak on both sides."""
        self.call.cancel()


def unsubscribe(subscription_id: int) -> pb.WatchInvalidationsRequest:
    """End a subscription."""
    return pb.WatchInvalidationsRequest(unsubscribe=invalidation_pb2.Unsubscribe(subscription_id=subscription_id))


def ack(revision: revision_pb2.Revision) -> pb.WatchInvalidationsRequest:
    """Acknowledge everything up to a revision."""
    return pb.WatchInvalidationsRequest(ack=invalidation_pb2.Ack(revision=revision))


def kinds(frames: list[Frame]) -> list[str]:
    """What the frames are."""
    return [frame.WhichOneof("event") or "" for frame in frames]


def sequences(frames: list[Frame]) -> list[int]:
    """The frames' revisions."""
    return [frame.revision.sequence for frame in frames]
