# A mutant of the code runs in a fork of the warm parent: whatever it does, the parent is not touched,
# and one that hangs or dies is ended from outside.
"""Run a function in a fork and read its answer."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any


class Broken(Exception):
    """The fork gave no answer; the text says how it ended."""


class Failed(Exception):
    """The function raised in the fork; the text is the last line of its traceback."""


def in_fork(work: Callable[[], Any], timeout: float) -> Any:
    """What `work` returns (plain values), run in a fork.

    Raises:
        Broken: when it takes longer than `timeout` seconds, or its process dies.
        Failed: when it raises.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(work, reading, writing)
    os.close(writing)
    try:
        data = _read(reading, time.monotonic() + timeout)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # the fork leads its own group, compilers included
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if data is None:
        raise Broken(f"the run did not end within {timeout:.0f} s")
    try:
        answer = json.loads(data)
    except ValueError:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {os.WEXITSTATUS(status)}"
        raise Broken(f"the run's process died ({how})") from None
    if "error" in answer:
        raise Failed(answer["error"])
    return answer["value"]


def _child(work: Callable[[], Any], reading: int, writing: int) -> None:
    """Never returns."""
    code = 1
    try:
        os.setsid()
        os.close(reading)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        try:
            answer = {"value": work()}
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1:]
            where = f" ({os.path.basename(last[0].filename)}:{last[0].lineno})" if last else ""
            answer = {"error": f"{type(error).__name__}: {error}"[:300] + where}
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(answer).encode())
        code = 0
    finally:
        os._exit(code)


def _read(pipe: int, until: float) -> bytes | None:
    """Everything until the other end is closed; None when the time is over."""
    parts = []
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return None
        part = os.read(pipe, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
