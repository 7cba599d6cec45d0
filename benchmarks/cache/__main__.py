"""`python -m benchmarks.cache`: the input tokens of a month of 40 conversations of 20 turns, by three ways.

Each turn comes a minute after the one before. A tenth of the turns teach something. Prompts have 900 tokens
of instructions and tools, and each answer 130. What is recalled is what `recall` finds.
"""

import asyncio
import random
from collections import defaultdict

from recollect import MemoryStore, PromptMemory, PromptOptions, PromptOwner

from .rules import RULES, Rules, Sent, cost

CONVERSATIONS, TURNS = 40, 20
INSTRUCTIONS = "You help the customers of a shop. " * 112
ANSWER = "Here is what I would do next, step by step, with the reasons for it. " * 8
THINGS = ["boat", "bicycle", "piano", "garden", "camera", "kitchen", "car", "tent", "guitar", "sofa"]
PLACES = ["Lisbon", "Oslo", "Porto", "Rome", "Vienna", "Bergen", "Ghent", "Turin"]
WAYS = ("block in the instructions", "page and tail", "whole earlier history")


async def simulate() -> dict[str, list[list[Sent]]]:
    """The prompts of each way, by conversation."""
    chance = random.Random(7)
    sent: dict[str, list[list[Sent]]] = defaultdict(list)
    history: list[str] = []
    async with MemoryStore(":memory:", workers=0, embedder=None) as store:
        for thing in THINGS:
            text = f"The user has a {thing} from {chance.choice(PLACES)}."
            await store.add_entry("shop", "ada", "profile", text)
        prompts = PromptMemory()
        for number in range(CONVERSATIONS):
            talk = _Talk(number, store, prompts, chance, list(history))
            for _ in range(TURNS):
                await talk.turn()
            for way in WAYS:
                sent[way].append(talk.sent[way])
            history += talk.said
            await talk.record()
    return sent


class _Talk:
    def __init__(
        self,
        number: int,
        store: MemoryStore,
        prompts: PromptMemory,
        chance: random.Random,
        earlier: list[str],
    ) -> None:
        self.number, self.store, self.prompts, self.chance = number, store, prompts, chance
        self.earlier = earlier
        self.said: list[str] = []
        self.sent: dict[str, list[Sent]] = defaultdict(list)

    async def turn(self) -> None:
        place = len(self.said) // 2
        thing = self.chance.choice(THINGS)
        question = f"Turn {place} of talk {self.number}: how do I look after my {thing} in winter?"
        if self.chance.random() < 0.1:
            await self.store.add_entry(
                "shop", "ada", "event", f"The user repaired the {thing}, time {self.number}.{place}."
            )
        recalled = await self.store.recall(question, "shop", "ada")
        owner = PromptOwner(self.store, "shop", "ada", f"talk-{self.number}")
        parts = await self.prompts.compose(owner, question, PromptOptions(), seen=self.said)
        at = 60.0 * place
        self._add(WAYS[0], [f"{INSTRUCTIONS}\n\n{recalled.text}", *self.said, question], at)
        self._add(WAYS[1], [INSTRUCTIONS, parts.page, *self.said, question], at, parts.tail)
        self._add(WAYS[2], [INSTRUCTIONS, *self.earlier, *self.said, question], at)
        self.said += [question, ANSWER]

    def _add(self, way: str, prompt: list[str], at: float, tail: str = "") -> None:
        self.sent[way].append(Sent([*prompt, tail] if tail else prompt, len(prompt), at))

    async def record(self) -> None:
        roles = ("user", "assistant")
        messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(self.said)]
        await self.store.record_conversation("shop", "ada", messages)


def main() -> None:
    """Print a table."""
    sent = asyncio.run(simulate())
    print("| | input tokens | " + " | ".join(f"{rules.name}: paid (cached)" for rules in RULES) + " |")
    print("|---|---|" + "---|" * len(RULES))
    for way in WAYS:
        costs = [[cost(each, rules) for each in sent[way]] for rules in RULES]
        plain = sum(paid for paid, _ in (cost(each, _UNCACHED) for each in sent[way]))
        cells = [
            f"{sum(paid for paid, _ in found):,.0f} ({sum(hit for _, hit in found) / plain:.0%})"
            for found in costs
        ]
        print(f"| {way} | {plain:,.0f} | " + " | ".join(cells) + " |")


_UNCACHED = Rules("none", 10**12, 1, 1.0, 1.0, 0)

if __name__ == "__main__":
    main()
