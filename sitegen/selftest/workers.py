# Several mutants at a time: forks of the warm gate, each with a scratch copy of its own.
"""Try mutants in a number of processes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sitegen.selftest.mutant import Mutant

#: Prepares a worker and gives what it does with one mutant: plain values, or None when the time is over.
Prepare = Callable[[], contextlib.AbstractContextManager[Callable[[Mutant], dict[str, Any] | None]]]


class WorkerDied(RuntimeError):
    """A worker ended without an answer: a fault of sitegen, since code only runs in forks of a worker."""


def in_workers(mutants: Sequence[Mutant], jobs: int, prepare: Prepare) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, answer) of every mutant, as they come; each worker takes every `jobs`-th one."""
    workers: dict[int, tuple[int, bytes]] = {}  # reading end -> process, what is not yet a whole line
    try:
        for first in range(min(jobs, len(mutants))):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reading)
                for other in workers:
                    os.close(other)
                _work(list(range(first, len(mutants), jobs)), mutants, prepare, writing)
            os.close(writing)
            workers[reading] = (child, b"")
        while workers:
            for reading in select.select(list(workers), [], [])[0]:
                child, rest = workers[reading]
                data = os.read(reading, 1 << 16)
                *lines, rest = (rest + data).split(b"\n")
                workers[reading] = (child, rest)
                for line in lines:
                    number, answer = json.loads(line)
                    if number < 0:
                        raise WorkerDied(answer)
                    yield number, answer
                if not data:
                    del workers[reading]
                    os.close(reading)
                    _, status = os.waitpid(child, 0)
                    if status:
                        raise WorkerDied(f"wait status {status}")
    finally:
        for reading, (child, _) in workers.items():
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


def _work(numbers: Sequence[int], mutants: Sequence[Mutant], prepare: Prepare, writing: int) -> None:
    """Never returns."""
    code = 1
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(SystemExit(1)))  # so that the copy is removed
    try:
        with os.fdopen(writing, "wb") as pipe:
            try:
                with prepare() as work:
                    for number in numbers:
                        answer = work(mutants[number])
                        if answer is None:
                            break
                        pipe.write(json.dumps([number, answer]).encode() + b"\n")
                        pipe.flush()
                code = 0
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                text = f"{type(error).__name__}: {error} ({os.path.basename(last.filename)}:{last.lineno})"
                pipe.write(json.dumps([-1, text]).encode() + b"\n")
    finally:
        os._exit(code)
