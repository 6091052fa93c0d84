"""What asyncio itself can do: a server that looks for the end of a request and writes bytes made in advance.

python bench/mock_server_ceiling.py PORT CHUNKS: no parsing, no journal, nothing else that a server is for. A row of
bench/mock_server.py, to show how much of a figure is the loop, the kernel and the load client.
"""

import asyncio
import sys
from typing import cast

EVENT = (
    b'data: {"id":"chatcmpl-mock1","object":"chat.completion.chunk","created":1767225600,"model":"gpt-4o","choices":'
    b'[{"index":0,"delta":{"content":"twenty characters...."},"logprobs":null,"finish_reason":null}]}\n\n'
)
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
BODY = b'{"id":"chatcmpl-mock1","object":"chat.completion","choices":[{"index":0,"message":{"content":"pong"}}]}'
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


class Ceiling(asyncio.Protocol):
    """One connection."""

    def __init__(self, chunks: int) -> None:
        self._chunks = chunks
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._write = cast(asyncio.Transport, transport).write

    def data_received(self, data: bytes) -> None:
        """Answer when a body has come whole, which ends like every JSON object."""
        self._read += data
        if not self._read.endswith(b"}"):
            return
        streamed = b'"stream": true' in self._read
        self._read = b""
        if not streamed:
            self._write(WHOLE)
            return
        self._write(STREAM)
        for _ in range(self._chunks):
            self._write(CHUNK)
        self._write(b"0\r\n\r\n")


async def main(port: int, chunks: int) -> None:
    """Serve until ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Ceiling(chunks), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
