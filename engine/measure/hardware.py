"""Published speeds of hardware, each with its source: what a floor is computed from for machines that are not here.

Peaks are dense (no sparsity counted double) and of one device. A peak that its maker does not state is left
out, and so is what would need it. `engine.measure.machine_rates` measures the machine this runs on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Hardware:
    """One device.

    peak       operations per second by number format
    bandwidth  of its memory, bytes per second
    memory     bytes; 0 where it is sold with many sizes
    """

    name: str
    peak: Mapping[str, float]
    bandwidth: float
    memory: float
    source: str

    def best_peak(self, dtype: str) -> float | None:
        """Operations per second in a format, or in the one it would be computed in instead; None: not published.

        Weights and caches of fewer bits are widened before they are multiplied, unless the device can multiply them.
        """
        fallbacks = {"fp16": ("fp16", "bf16"), "bf16": ("bf16", "fp16"), "fp32": ("fp32",)}
        for name in (dtype, *fallbacks.get(dtype, ("bf16", "fp16"))):
            if name in self.peak:
                return self.peak[name]
        return None


def _device(name: str, bandwidth: float, memory: float, source: str, **peak: float) -> Hardware:
    return Hardware(name, MappingProxyType(peak), bandwidth, memory, source)


_NVIDIA = "NVIDIA {}, rates with sparsity halved"
_HOPPER = MappingProxyType({"bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12, "int8": 1978.9e12, "fp32": 66.9e12})
_ALL = (
    _device("H100 SXM", 3.35e12, 80e9, _NVIDIA.format("H100 data sheet"), **_HOPPER),
    _device(
        "H100 PCIe", 2.0e12, 80e9, _NVIDIA.format("H100 data sheet"), bf16=756e12, fp16=756e12, fp8=1513e12,
        int8=1513e12, fp32=51e12,
    ),
    _device("H200", 4.8e12, 141e9, _NVIDIA.format("H200 data sheet"), **_HOPPER),
    _device(
        "A100 80GB SXM", 2.039e12, 80e9, _NVIDIA.format("A100 data sheet"), bf16=312e12, fp16=312e12, fp32=19.5e12,
        int8=624e12,
    ),
    _device(
        "B200", 8.0e12, 180e9,
        _NVIDIA.format("Blackwell architecture brief (HGX, 1,000 W)")
        + "; memory: DGX B200 data sheet, 1,440 GB and 64 TB/s for eight, where the brief says up to 192 GB each",
        bf16=2250e12, fp16=2250e12, fp8=4500e12, int8=4500e12, fp32=80e12,
    ),
    _device("TPU v5e", 8.2e11, 16e9, "Google Cloud TPU v5e page; bandwidth as How to Scale Your Model rounds it",
            bf16=197e12, int8=393e12),
    _device("RTX 4090", 1.008e12, 24e9, _NVIDIA.format("Ada architecture paper") + ", sums in fp32", bf16=165e12,
            fp16=165e12, fp8=330.3e12, int8=660.6e12, fp32=82.58e12),
    _device("Apple M4 Max", 546e9, 128e9, "Apple, MacBook Pro (2024), 40-core GPU; fp16 rate from gpuhunter.io",
            fp16=34e12),
    _device("Apple M4 Pro", 273e9, 64e9, "Apple, MacBook Pro (2024); no rate of arithmetic is published"),
    _device("Phone, Snapdragon 8 Gen 3", 76.8e9, 0, "Qualcomm: four 16-bit channels of LPDDR5X at 4,800 MHz"),
    _device("Laptop CPU, DDR5-5600", 89.6e9, 0, "JEDEC DDR5: two channels of 8 bytes, 5.6e9 transfers a second"),
)  # fmt: skip

HARDWARE: MappingProxyType[str, Hardware] = MappingProxyType({device.name: device for device in _ALL})
