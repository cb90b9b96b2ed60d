"""Timing of a GPU call by CUDA graph replays, on cold or warm data, and the kernels that it launches."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

COLD_BYTES = 200e6  # data rotated through, several times the second-level cache
WARM_CALLS = 20
REPLAYS = 15


def sets_for(bytes_a_call: float, cold: bool) -> int:
    """Sets of buffers to rotate through, so that none is still cached when its turn comes; one set if warm."""
    return max(2, int(COLD_BYTES / bytes_a_call) + 1) if cold else 1


def median_microseconds(call: Callable[[int], Any], sets: int) -> float:
    """-> the median GPU time of call(i), i rotating through the sets, inside one CUDA graph.

    On cold data the results of all calls are kept, so that they too lie in memory of their own.
    """
    calls = sets if sets > 1 else WARM_CALLS
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(min(sets, 3)):
            call(i)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            kept = [call(i) for i in range(sets)] if sets > 1 else [call(0) for _ in range(calls)][-1:]
        for _ in range(3):
            graph.replay()
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(REPLAYS)]
        for start, end in events:
            start.record()
            graph.replay()
            end.record()
        torch.cuda.synchronize()
    del kept
    return statistics.median(start.elapsed_time(end) for start, end in events) * 1e3 / calls


def launches(call: Callable[[int], Any]) -> int:
    """-> kernels, copies and fills that one call puts on the GPU."""
    call(0)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call(0)
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profile.events())
