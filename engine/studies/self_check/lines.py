"""What the self-check reports, line by line, with what each number was held against in words."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.records import Check
from engine.studies.self_check.findings import Distance, Tally


@dataclass(slots=True, eq=False)
class Lines:
    """What has been found so far."""

    oracle: Tally = field(default_factory=lambda: Tally("independent model"))
    ids: Tally = field(default_factory=lambda: Tally("ids and positions"))
    logits: Distance = field(default_factory=lambda: Distance("logits", "logit"))
    candidates: Tally = field(default_factory=lambda: Tally("ranks and histogram"))
    stages: Tally = field(default_factory=lambda: Tally("stages"))
    draws: Tally = field(default_factory=lambda: Tally("sampled tokens"))
    attention: Distance = field(default_factory=lambda: Distance("attention", "probability"))
    sums: Distance = field(default_factory=lambda: Distance("rows of attention", "probability"))
    cache: Distance = field(default_factory=lambda: Distance("keys and values", "of the layer's largest"))
    bytes: Tally = field(default_factory=lambda: Tally("cache bytes"))
    stops: Tally = field(default_factory=lambda: Tally("stop rules"))
    text: Tally = field(default_factory=lambda: Tally("text"))
    memory: Tally = field(default_factory=lambda: Tally("memory"))
    times: Tally = field(default_factory=lambda: Tally("times"))

    def report(self, *, tokens: int, steps: int, looked_at: tuple[int, ...], cached: str) -> tuple[Check, ...]:
        """Every line, worst news included."""
        every = f"all {steps:,} steps" if steps > 1 else "the one step"
        shown = ", ".join(map(str, looked_at))
        return (
            self.oracle.check("stock modules with eager attention over the same weights"),
            self.ids.check(f"{every} against the recipe: ids, positions, lengths, settings"),
            self.logits.check(
                f"{every}, as kept, against one forward pass of stock transformers over all {tokens:,} tokens; "
                f"every logit of steps {shown}"
            ),
            self.candidates.check("order, histogram, log-sum-exp and flags, by float64 sums of the check's own"),
            self.stages.check("kept tokens, probabilities, entropy and removed mass of every stage, in float64 again"),
            self.draws.check(
                "u computed again in whole numbers, and the interval that holds it by an inverse CDF of the check's own"
            ),
            self.attention.check(f"weights of steps {shown}, every layer and head, against eager attention"),
            self.sums.check("sums of those rows against eager attention's: 1, or less where a sink takes a share"),
            self.cache.check("the cache as it is now, and the norms of every step, against stock transformers' cache"),
            self.bytes.check(cached),
            self.stops.check(f"{every}: every rule judged again; who asked for a stop cannot be"),
            self.text.check(f"{every}: text, held text and pending bytes from the bytes of the tokens"),
            self.memory.check(
                "weights against the stock model's tensors; what the system reports only for sense, as it cannot be "
                "computed"
            ),
            self.times.check("parts add up to no more than the whole; a clock cannot be read twice"),
        )
