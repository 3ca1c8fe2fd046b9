"""A client of pyright's language server, which completes names as an editor does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self


class LanguageServer:
    """A running server, which finds xgrad on the path as an installed package.

    The protocol is JSON-RPC: messages with a header that has their length.
    """

    def __init__(self, root: Path, paths: list[Path]) -> None:
        path = os.pathsep.join(map(str, paths))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pyright.langserver", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=root,
            env={**os.environ, "PYTHONPATH": path},
        )
        self.root, self.requests = root, 0
        folder = {"uri": root.as_uri(), "name": root.name}
        self.request(
            "initialize",
            processId=os.getpid(),
            rootUri=root.as_uri(),
            workspaceFolders=[folder],
            capabilities={"workspace": {"configuration": True}},
        )
        self.send(method="initialized", params={})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, **message: Any) -> None:
        """Send a message."""
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
        self.process.stdin.flush()

    def receive(self) -> Any:
        """Wait for a message."""
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server ended"
        return json.loads(stream.read(length))

    def request(self, method: str, **params: Any) -> Any:
        """Return the result of a request; requests of the server are answered meanwhile."""
        self.requests += 1
        self.send(id=self.requests, method=method, params=params)
        while True:
            message = self.receive()
            if "method" not in message and message.get("id") == self.requests:
                assert "error" not in message, message
                return message["result"]
            if "method" in message and "id" in message:
                self.send(id=message["id"], result=self.answer(message))

    def answer(self, message: Mapping[str, Any]) -> Any:
        """Return the settings that the server asks for."""
        if message["method"] != "workspace/configuration":
            return None
        return [
            {"pythonPath": sys.executable} if item.get("section") == "python" else {}
            for item in message["params"]["items"]
        ]

    def completions(self, module: str) -> dict[str, Any]:
        """Return what the server offers behind the dot of a module, by name."""
        uri = (self.root / f"{module}.py").as_uri()
        text = f"import {module}\n{module}."
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.send(method="textDocument/didOpen", params={"textDocument": document})
        position = {"line": 1, "character": len(module) + 1}
        found = self.request(
            "textDocument/completion", textDocument={"uri": uri}, position=position
        )
        return {item["label"]: item for item in found["items"]}
