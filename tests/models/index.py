"""A package index and a model hub on this machine, with a fault where a test wants one."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def make_wheel(name: str, version: str, members: dict[str, bytes]) -> bytes:
    """The bytes of a wheel with these files and nothing that pip could object to."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


@dataclass
class Served:
    """Files by path, and what was asked for. `before(path)` runs before an answer; `cut` stops half-way."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    before: Callable[[str], None] = lambda path: None
    cut: bool = False
    hub: bool = False
    url: str = ""

    def add_wheel(self, name: str, version: str, content: bytes) -> None:
        file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        self.files[f"/simple/{name}/"] = f'<html><body><a href="/files/{file}">{file}</a></body></html>'.encode()
        self.files[f"/files/{file}"] = content

    def downloads(self) -> int:
        return sum(path.startswith("/files/") for path in self.asked)


@contextmanager
def serve(served: Served) -> Iterator[Served]:
    """The files over HTTP on a free port of 127.0.0.1, for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path = self.path.split("?")[0]
            if body:
                served.asked.append(path)
                served.before(path)
            content = served.files.get(path)
            self.send_response(404 if content is None else 200)
            content = content or b""
            self.send_header("Content-Length", str(len(content)))
            html = path.startswith("/simple/")
            self.send_header("Content-Type", "text/html" if html else "application/octet-stream")
            if served.hub:
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", "0123456789abcdef0123456789abcdef01234567")
                if path not in served.files:
                    self.send_header("X-Error-Code", "EntryNotFound")
            self.end_headers()
            if body and served.cut and path.startswith("/files/"):
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            elif body:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
