"""The decode engine: a real model, stepped one token at a time, with every number on record.

It knows nothing of any user interface. What leaves it is frozen and plain (see records.py).
Files are layered; each imports only from the layers below it (docs/architecture.md, tests/test_layers.py):

0 words       config, records, tokens, facts, errors
1 arithmetic  costs, registry, scheduler: no torch
2 parts       model_loader, tokenizer, kv_store, attention, sampling, stopping, measure, kernels
3 one forward model_runner
4 callers     session, llm_engine, self_check, and `python -m engine`
"""
