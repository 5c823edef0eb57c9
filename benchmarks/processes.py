"""Servers as processes of their own, started and ended by their handle."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

HERE = Path(__file__).parent


@contextmanager
def bare_server(*arguments: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """A floor; see bare_server.py."""
    command = [sys.executable, str(HERE / "bare_server.py"), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process
        finally:
            process.kill()


@contextmanager
def cardkeeper_server() -> Iterator[int]:
    """The service on its defaults, on a free port."""
    command = [sys.executable, "-m", "cardkeeper", "serve", "--listen", "127.0.0.1:0", "--allow-loopback"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.search(r":(\d+)$", line.strip())
            if found is None:
                raise RuntimeError(f"the service did not start: {line!r}")
            yield int(found.group(1))
        finally:
            process.terminate()
            process.wait(20)


class CardSource:
    """A card over HTTP that can be replaced."""

    def __init__(self, card: dict[str, Any]) -> None:
        self.body = json.dumps(card).encode()
        source = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(source.body)))
                self.end_headers()
                self.wfile.write(source.body)

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def serve(self, card: dict[str, Any]) -> None:
        """Replace the card."""
        self.body = json.dumps(card).encode()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()


def card(skills: int, first: str = "skill") -> dict[str, Any]:
    """A card as fleets publish it: 1.0, some skills, modes of their own for every other one."""
    return {
        "name": "Benchmark agent",
        "description": "Serves its card.",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": "https://agent.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [
            {
                "id": f"{first}-{number}",
                "name": f"Skill {number}",
                "description": "Does what its name says, for whoever asks.",
                "tags": ["benchmark", "text"],
                **(
                    {"inputModes": ["text/plain"], "outputModes": ["text/markdown", "text/plain"]} if number % 2 else {}
                ),
            }
            for number in range(skills)
        ],
    }
