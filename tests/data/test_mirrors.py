"""Downloads from faulty and hostile servers fail in bounded time and memory, with the reason.

The servers run on this machine.
"""

import contextlib
import gzip
import socket
import socketserver
import threading
import time
import tracemalloc

import pytest

from xgrad.data import mirrors
from xgrad.data.idx import DataError, decompress

GOOD = gzip.compress(b"content")
MOST = 10**6


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with contextlib.suppress(OSError):
            self.request.settimeout(5)
            while b"\r\n\r\n" not in self.request.recv(65536):
                pass
            for part in self.server.answer(self.server):
                if self.server.ended.is_set():
                    break
                self.request.sendall(part)
            self.request.shutdown(socket.SHUT_WR)
            self.request.recv(1)  # returns when the other end closes


class Server(socketserver.ThreadingTCPServer):
    """A server that replies to each connection with the parts that `answer` yields."""

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.ended = answer, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def close(self):
        self.ended.set()
        self.shutdown()
        self.server_close()


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(mirrors, "TIMEOUT", 2.0)
    with contextlib.ExitStack() as stack:
        yield lambda answer: stack.enter_context(contextlib.closing(Server(answer)))


def good(server):
    yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(GOOD), GOOD)


def check(content):
    if decompress(content, "file.gz", 100) != b"content":
        raise DataError("file.gz: expected the content")


def endless(server):
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        yield bytes(65536)


def negative_chunk(server):
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n"
    for _ in range(500):
        yield bytes(65536)


def slow_drip(of):
    def drip(server):
        yield of
        while True:
            yield b"x"
            time.sleep(0.02)

    return drip


def silent(server):
    server.ended.wait(5)
    yield b""


def redirect(to):
    def answer(server):
        target = (to or server.url).encode()
        yield (
            b"HTTP/1.1 302 Found\r\nLocation: "
            + target
            + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )

    return answer


def raw(*parts):
    return lambda server: iter(parts)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HOSTILE = {
    "nothing": raw(),
    "no HTTP": raw(b"\x00\x01\x02garbage"),
    "bad status line": raw(b"HTTP/9.9 \x1b[31mhello\r\n\r\n"),
    "status of letters": raw(b"HTTP/1.1 abc OK\r\n\r\n"),
    "long status line": raw(b"HTTP/1.1 200 " + b"x" * 10**5 + b"\r\n\r\n"),
    "long reason": raw(b"HTTP/1.1 404 " + b"x" * 60000 + b"\r\n\r\n"),
    "reason with escapes": raw(b"HTTP/1.1 404 \x1b[31m\x07\r\nContent-Length: 0\r\n\r\n"),
    "long header": raw(OK + b"A: " + b"x" * 10**5 + b"\r\n\r\n"),
    "many headers": raw(OK + b"A: b\r\n" * 1000 + b"\r\n" + GOOD),
    "short body": raw(OK + b"Content-Length: 1000\r\n\r\n" + GOOD),
    "truncated header": raw(OK + b"Content-Le"),
    "vast length": raw(OK + b"Content-Length: 99999999999999999999\r\n\r\n" + GOOD),
    "cut length": raw(OK + b"Content-Length: 5\r\n\r\n" + GOOD),
    "garbage chunks": raw(CHUNKED + b"zz\r\n" + GOOD),
    "vast chunk": raw(CHUNKED + b"f" * 15 + b"\r\n" + GOOD),
    "vaster chunk": raw(CHUNKED + b"f" * 1000 + b"\r\n" + GOOD),
    "long chunk line": raw(CHUNKED + b"5;" + b"x" * 10**5 + b"\r\n"),
    "short chunk": raw(CHUNKED + b"ff\r\n" + GOOD),
    "negative chunk": negative_chunk,
    "truncated gzip": raw(OK + b"\r\n" + GOOD[:-5]),
    "gzip with more": raw(OK + b"\r\n" + GOOD + b"more"),
    "gzip bomb": raw(OK + b"\r\n" + gzip.compress(bytes(10**8))),
    "redirected to itself": redirect(None),
    "redirected to a file": redirect("file:///etc/passwd"),
    "redirected to nonsense": redirect("http://[::1"),
    "redirected to a bad port": redirect("http://127.0.0.1:99999999/"),
    "redirected to an unknown scheme": redirect("gopher://x/"),
    "redirected to FTP": redirect("ftp://127.0.0.1:1/x"),
    "redirected with control characters": redirect("http://127.0.0.1/a b\x01"),
    "endless": endless,
    "empty": raw(OK + b"Content-Length: 0\r\n\r\n"),
    "no content": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "only continue": raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 200),
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
def test_malformed_reply_is_reported_and_the_next_mirror_is_tried(answer, serve, tmp_path):
    bad, fine = serve(answer).url, serve(good).url
    tracemalloc.start()
    try:
        (reason,) = mirrors.fetch(tmp_path / "file.gz", (bad,), check, MOST)
        assert tracemalloc.get_traced_memory()[1] < 2 * 10**7
    finally:
        tracemalloc.stop()
    assert reason.startswith(f"{bad}: ") and len(reason) > len(bad) + 3
    assert reason.isprintable() and len(reason) < 600
    assert not list(tmp_path.iterdir())
    assert mirrors.fetch(tmp_path / "file.gz", (bad, fine), check, MOST) == []
    assert (tmp_path / "file.gz").read_bytes() == GOOD and len(list(tmp_path.iterdir())) == 1


def test_reason_names_the_fault(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(mirrors, "TIMEOUT", 0.1)
    closed = serve(good)
    closed.close()
    servers = [
        serve(raw(b"HTTP/1.1 404 Not Found\r\n\r\n")),
        serve(HOSTILE["short body"]),
        serve(silent),
        closed,
    ]
    reasons = mirrors.fetch(
        tmp_path / "file.gz", tuple(server.url for server in servers), check, MOST
    )
    expected = ["HTTP Error 404: Not Found", "IncompleteRead(", "timed out", "<urlopen error"]
    for reason, server, text in zip(reasons, servers, expected, strict=True):
        assert reason.startswith(f"{server.url}: ") and text in reason


@pytest.mark.parametrize(
    "of", [b"", b"HTTP/1.1 200 OK\r\nA: ", OK + b"\r\n", CHUNKED + b"5;"], ids=str
)
def test_mirror_below_the_minimal_rate_is_given_up(of, serve, tmp_path, monkeypatch):
    monkeypatch.setattr(mirrors, "GRACE", 0.3)
    bad, fine = serve(slow_drip(of)).url, serve(good).url
    start = time.monotonic()
    (reason,) = mirrors.fetch(tmp_path / "file.gz", (bad,), check, MOST)
    assert time.monotonic() - start < 3 and reason.startswith(f"{bad}: too slow: ")
    assert mirrors.fetch(tmp_path / "file.gz", (bad, fine), check, MOST) == []


def test_mirror_above_the_minimal_rate_is_not_given_up(serve, tmp_path, monkeypatch):
    def slow(server):
        yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
        for i in range(len(GOOD)):
            yield GOOD[i : i + 1]
            time.sleep(0.02)

    monkeypatch.setattr(mirrors, "GRACE", 0.2)
    monkeypatch.setattr(mirrors, "MIN_RATE", 5.0)
    assert mirrors.fetch(tmp_path / "file.gz", (serve(slow).url,), check, MOST) == []


def test_interrupt_ends_the_download(serve, tmp_path, monkeypatch):
    def interrupt(content):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mirrors.fetch(tmp_path / "file.gz", (serve(good).url,), interrupt, MOST)
    assert not list(tmp_path.iterdir())
