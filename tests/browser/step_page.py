"""The Step page as a person uses it: words for what one does and what one sees."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect


class StepPage:
    """Drives one tab."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url

    def open(self, query: str = "") -> StepPage:
        """The page with its model there, and the run that it begins by itself where the address asks for none."""
        self.page.goto(self.url + query)
        self.root.wait_for()
        expect(self.page.locator(".model-button")).to_contain_text("SmolLM2")
        expect(self.root).to_have_attribute("data-recorded", "false")
        return self if query else self.wait_for_steps(1)

    # --- doing --------------------------------------------------------------------------------------------

    def prefill(self, prompt: str, *, chat: bool = False) -> StepPage:
        self.page.locator(".prompt-mode button").nth(1 if chat else 0).click()
        self.page.locator(".prompt-box").fill(prompt)
        self.page.locator("button.prefill").click()
        return self

    def prefilled(self, prompt: str, **how: bool) -> StepPage:
        """Prefill and wait for its step: the run on screen is another then."""
        before = self.shown("epoch")
        self.prefill(prompt, **how)
        expect(self.root).not_to_have_attribute("data-epoch", before)
        return self.wait_for_steps(1)

    def press(self, key: str, times: int = 1) -> StepPage:
        for _ in range(times):
            self.page.keyboard.press(key)
        return self

    def act(self, name: str) -> StepPage:
        self.page.locator(f".transport [data-act={name}]").click()
        return self

    def step(self, times: int = 1) -> StepPage:
        """Press Space and wait for each step to be drawn."""
        for _ in range(times):
            wanted = self.steps + 1
            self.press("Space").wait_for_steps(wanted)
        return self

    def preset(self, name: str) -> StepPage:
        self.page.locator(".sampling-button").click()
        preset = self.page.locator(f".preset[data-preset='{name}']")
        preset.click()
        expect(preset).to_have_attribute("aria-pressed", "true")
        self.page.keyboard.press("Escape")
        return self

    # --- seeing -------------------------------------------------------------------------------------------

    @property
    def root(self) -> Locator:
        return self.page.locator(".loupe")

    def shown(self, name: str) -> str:
        value = self.root.get_attribute(f"data-{name}")
        assert value is not None, f"the page does not say its {name}"
        return value

    def link(self, *, steps: int) -> str:
        """The page's address, once it says so many steps."""
        expect(self.page).to_have_url(re.compile(rf"\bsteps={steps}\b"))
        return self.page.url

    @property
    def steps(self) -> int:
        return int(self.shown("steps"))

    @property
    def selected(self) -> int:
        return int(self.shown("step"))

    def wait_for_steps(self, count: int) -> StepPage:
        """So many of this tab's own; a step that was recorded earlier is none."""
        expect(self.root).to_have_attribute("data-recorded", "false")
        expect(self.root).to_have_attribute("data-steps", str(count))
        return self

    def wait_for_selected(self, step: int) -> StepPage:
        expect(self.root).to_have_attribute("data-step", str(step))
        return self

    def slider(self, label: str) -> Locator:
        return self.page.locator(f".lp-slider input[aria-label='{label}']")

    @property
    def chips(self) -> Locator:
        return self.page.locator(".strip .chip")

    @property
    def ids(self) -> list[int]:
        """Token ids in the strip."""
        return [int(i) for i in self.chips.evaluate_all("chips => chips.map(chip => chip.dataset.id)")]

    @property
    def roles(self) -> list[str]:
        found: list[str] = self.chips.evaluate_all("chips => chips.map(chip => chip.dataset.role)")
        return found

    @property
    def text(self) -> str:
        return self.page.locator(".strip-text").inner_text()

    def station(self, name: str) -> str:
        return self.page.locator(f".station[data-station={name}]").inner_text()

    @property
    def error(self) -> Locator:
        return self.page.locator(".prompt-error")

    def store(self, expression: str) -> Any:
        """Evaluate on the page's store: what the panels draw from."""
        return self.page.evaluate(f"(() => {{ const store = window.__loupe; return {expression}; }})()")
