"""A small lesson as text, to be changed line by line."""

from __future__ import annotations

GOOD = """---
title: Small
summary: A small lesson.
minutes: 2
model: Tiny
prompt: abc
---

## First

The prompt has **{prefill.in_count}** tokens. They are `read` by *prefill*.

- do: prefill
- show: tokens, cache
- tour: yes

---

## Second

- choose: Which?
  - [ ] one
  - [x] {step.token}
- you: step
- then: It is {step.token}, see [more](https://example.org/a).

---

# For the teacher

Take **two** minutes.
"""


def with_line(old: str, new: str) -> str:
    """The lesson with one of its lines written otherwise."""
    assert GOOD.count(f"{old}\n") == 1
    return GOOD.replace(f"{old}\n", f"{new}\n")


def line_of(text: str, part: str) -> int:
    """The line, from 1, on which `part` stands first."""
    return next(i for i, line in enumerate(text.split("\n"), 1) if part in line)
