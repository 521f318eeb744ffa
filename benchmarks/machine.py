"""Which machine and which versions a result belongs to."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import numpy as np
import psutil
import torch
import transformers


def describe() -> dict[str, object]:
    """Plain facts about this machine, as JSON can hold them."""
    return {
        "cpu": cpu_name(),
        "cores": psutil.cpu_count(logical=False),
        "logical_cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "torch_threads": torch.get_num_threads(),
        "load_average": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
    }


def cpu_name() -> str:
    """The processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def short_name() -> str:
    """For a file name: letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", f"{cpu_name()} {os.cpu_count()} cpus".lower()).strip("-")
