"""How long calls take, in turns, and on which machine.

calls by name -> milliseconds by name
"""

import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Call = Callable[[], object]


def milliseconds(calls: dict[str, Call], seconds: float, by_wall: bool = False) -> dict[str, float]:
    """The median time of each call; they take turns, at least five each, for about `seconds`.

    One thread is timed by the processor's clock, which stands still while other programs run,
    unless `by_wall`: what other processes do is not on that clock.
    """
    import torch

    own_time = torch.get_num_threads() == 1 and not by_wall
    clock = time.process_time if own_time else time.perf_counter
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = clock() + seconds
    for turn in itertools.count():
        if turn >= 5 and clock() > end:
            break
        for name, call in calls.items():
            start = clock()
            call()
            times[name].append(1000 * (clock() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def machine() -> dict[str, Any]:
    import torch

    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text(encoding="utf-8").splitlines() if cpu_info.exists() else []
    models = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def describe(facts: dict[str, Any]) -> str:
    threads = f"threads: {facts['threads']} on {facts['cores']} cores"
    return f"{facts['processor']}, {threads}, torch {facts['torch']}, Python {facts['python']}"
