"""Where claims and published figures come from, each named once."""

from __future__ import annotations

from explorer.claims.claim import Source

ARITHMETIC = Source("arithmetic on the inputs")
SCALING_BOOK = Source("How to Scale Your Model, part 7", "https://jax-ml.github.io/scaling-book/inference")
ROOFLINES = Source("How to Scale Your Model, part 1", "https://jax-ml.github.io/scaling-book/roofline")
PAGED = Source("Kwon et al. 2023, PagedAttention", "https://arxiv.org/abs/2309.06180")
FLASH = Source("Dao et al. 2022, FlashAttention", "https://arxiv.org/abs/2205.14135")
LEVIATHAN = Source("Leviathan et al. 2023, speculative decoding", "https://arxiv.org/abs/2211.17192")
CHEN = Source("Chen et al. 2023, speculative sampling", "https://arxiv.org/abs/2302.01318")
HOLTZMAN = Source("Holtzman et al. 2020, nucleus sampling", "https://arxiv.org/abs/1904.09751")
INVARIANCE = Source(
    "He, Thinking Machines Lab 2025, on nondeterminism",
    "https://thinkingmachines.ai/blog/defeating-nondeterminism-in-llm-inference/",
)
ILLUSION = Source("Chodavarapu and Xu 2026, a preprint", "https://arxiv.org/abs/2604.15409")
GPT3 = Source("Brown et al. 2020, table 2.1", "https://arxiv.org/abs/2005.14165")
FLASH_MLA = Source("FlashMLA, notes on its kernel", "https://github.com/deepseek-ai/FlashMLA")
RASCHKA = Source("Raschka, LLMs from scratch, chapter 4", "https://github.com/rasbt/LLMs-from-scratch")
TRANSFORMERS = Source(
    "transformers, generation settings", "https://huggingface.co/docs/transformers/main_classes/text_generation"
)
H100 = Source("NVIDIA, H100 data sheet", "https://www.nvidia.com/en-us/data-center/h100/")
VLLM = Source("vLLM, its stop checks", "https://docs.vllm.ai/")
LLAMA_CARD = Source("Llama 3.1, generation_config.json", "https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct")
