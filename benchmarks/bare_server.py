"""The floors: the least that a grpc.aio server can do.

`python benchmarks/bare_server.py unary SIZE` answers every call of any method with SIZE ready bytes.
`python benchmarks/bare_server.py stream` writes what stands on each line of standard input (hex) to all open streams.
Both print the port they listen on.
"""

import asyncio
import sys

import grpc

from cardkeeper.rpc.server import OPTIONS


class AnyMethod(grpc.GenericRpcHandler):
    """One handler for whatever is called."""

    def __init__(self, handler: grpc.RpcMethodHandler) -> None:
        self._handler = handler

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return the handler."""
        del details
        return self._handler


def unary(size: int) -> grpc.RpcMethodHandler:
    """A handler that returns ready bytes."""
    answer = b"x" * size

    async def call(raw: bytes, context: object) -> bytes:
        del raw, context
        return answer

    return grpc.unary_unary_rpc_method_handler(call)


class Streams:
    """Every open stream waits for a frame, and writes it."""

    def __init__(self) -> None:
        self._boxes: dict[asyncio.Event, list[bytes]] = {}

    async def call(self, requests: object, context: "grpc.aio.ServicerContext") -> None:
        """Serve one stream."""
        del requests
        await context.read()
        awake, box = asyncio.Event(), []
        self._boxes[awake] = box
        await context.write(b"ready")
        try:
            while True:
                await awake.wait()
                awake.clear()
                for frame in box:
                    await context.write(frame)
                box.clear()
        finally:
            del self._boxes[awake]

    def publish(self, frame: bytes) -> None:
        """Hand a frame to every stream."""
        for awake, box in self._boxes.items():
            box.append(frame)
            awake.set()


async def main() -> None:
    """Serve until standard input ends."""
    streams = Streams()
    handler = unary(int(sys.argv[2])) if sys.argv[1] == "unary" else grpc.stream_stream_rpc_method_handler(streams.call)
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((AnyMethod(handler),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        streams.publish(bytes.fromhex(line.decode()))
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main())
