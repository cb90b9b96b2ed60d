# A plain file server on the loopback address, and a browser that may speak to nothing else.
"""Serve a built site and open it in Chromium, keeping everything that went wrong."""

from __future__ import annotations

import contextlib
import functools
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

#: name -> (width, height, colour scheme)
VIEWS = {
    "light": (1440, 1000, "light"),
    "dark": (1440, 1000, "dark"),
    "phone": (390, 844, "light"),
    "phone-dark": (390, 844, "dark"),
}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The address (ending in /) under which `folder` is served while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def chromium() -> str | None:
    """The installed Chromium, if any."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium through Playwright; nothing is downloaded."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()


@dataclass
class Visit:
    """An open page, with console errors, failed requests, and requests that left the machine."""

    page: Any
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def assert_clean(self) -> None:
        assert self.errors == []
        assert self.outside == []


@contextlib.contextmanager
def visit(opened: Any, address: str, view: str = "light", *, script: bool = True) -> Iterator[Visit]:
    """Open `address` in a fresh context; requests to other hosts are refused and recorded."""
    width, height, scheme = VIEWS[view]
    context = opened.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, java_script_enabled=script
    )
    host = address.split("/", 3)[2]
    result = Visit(context.new_page())

    def route(request: Any) -> None:
        url = request.request.url
        if url.startswith(("data:", "blob:")) or url.split("/", 3)[2] == host:
            request.continue_()
        else:
            result.outside.append(url)
            request.abort()

    context.route("**/*", route)
    page = result.page
    page.on("console", lambda message: result.errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: result.errors.append(str(error)))
    page.on("response", lambda answer: result.errors.append(answer.url) if answer.status >= 400 else None)
    page.goto(address, wait_until="load")
    page.evaluate("document.fonts && document.fonts.ready.then(() => 1)") if script else None
    try:
        yield result
    finally:
        context.close()
