"""Conversations by the thousand, made quickly from a seed, with what views have to cope with.

Beside what `tests/histories.py` makes (many kinds of calls in parallel, thoughts, handoffs, items before the
first user message, nothing but tools) there are approvals that come turns after the call they answer.
"""

import itertools
import random
from typing import Any

from histories import CALL_KINDS, call_and_output, handoff

Item = dict[str, Any]

WORDS = "order parcel refund Paris 天气 delivery status invoice 😀 please thanks when".split()  # noqa: SIM905


def history(seed: int, max_turns: int = 14) -> list[Item]:
    """A conversation that a model accepts."""
    chance = random.Random(seed)
    maker = _Maker(chance)
    items = maker.head()
    turns = chance.choice([0, 1, 2, *range(max_turns + 1)])
    for _ in range(turns):
        items += maker.turn()
    return items + maker.last_words()


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.ids = itertools.count()
        self.late: list[Item] = []  # outputs that follow later, after an approval

    def words(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randrange(1, 30)))

    def head(self) -> list[Item]:
        system = [{"role": "system", "content": self.words()}] * self.chance.choice([0, 0, 1, 2])
        return system + (self.tools() if self.chance.random() < 0.1 else [])

    def turn(self) -> list[Item]:
        items: list[Item] = [{"role": "user", "content": self.words()}, *self.approved()]
        for _ in range(self.chance.randrange(4)):
            items += self.chance.choice([self.tools, self.handoff, self.say])()
        return items + (self.await_approval() if self.chance.random() < 0.15 else [])

    def tools(self) -> list[Item]:
        kinds = self.chance.choices(CALL_KINDS, k=self.chance.randrange(1, 4))
        pairs = [call_and_output(kind, f"call_{next(self.ids)}", self.words()) for kind in kinds]
        outputs = [output for _, output in pairs]
        self.chance.shuffle(outputs)
        return [*self.thoughts(), *(call for call, _ in pairs), *outputs]

    def thoughts(self) -> list[Item]:
        count = self.chance.choice([0, 0, 1, 2])
        return [{"type": "reasoning", "id": f"rs_{next(self.ids)}", "summary": []} for _ in range(count)]

    def handoff(self) -> list[Item]:
        return [*self.thoughts(), *handoff(f"call_{next(self.ids)}")]

    def say(self) -> list[Item]:
        return [*self.thoughts(), {"role": "assistant", "content": self.words(), "type": "message"}]

    def await_approval(self) -> list[Item]:
        kind = self.chance.choice(CALL_KINDS)
        call, output = call_and_output(kind, f"call_{next(self.ids)}", self.words())
        self.late.append(output)
        return [call]

    def approved(self) -> list[Item]:
        """The outputs that follow now, one or more turns after their calls."""
        coming = [output for output in self.late if self.chance.random() < 0.5]
        self.late = [output for output in self.late if output not in coming]
        return coming

    def last_words(self) -> list[Item]:
        late, self.late = self.late, []
        return late
