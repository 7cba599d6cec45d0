"""The faults of an episode: which there are at a place, and how each is done.

A fault counts if it took effect on somebody who lives: a process was killed that was not at its end, there
were connections to cut, a call was refused while the disk was full, a clock shows another time than before, a
provider has answered as it was told to.

A clock jumps forward by days, or back to what is right or some hours further, and is right in the end. What
waits for a time goes on waiting when the clock is set back, until that time comes again: a run that is queued
or leased, if it is set back by less than an hour, and a conversation that is to be quiet, if by less than a
day. Learning is late by at most that. Set back by more, nothing waits: no jump forward is less than two days.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from starlette.types import ASGIApp

from recollect.testing.providers import ProviderServer

from ..clock import JumpingClock
from ..disk import fill, make_room
from .crew import Crew
from .places import Place, wait_until
from .provider import CHAT, EMBEDDINGS, FAULTS, mend

_DAY, _HOUR = 86_400, 3_600
_WEIGHTS = {
    "kill a client": 6,
    "kill the worker": 6,
    "kill PostgreSQL": 2,
    "cut connections": 5,
    "cut in an answer": 5,
    "delay answers": 2,
    "fill the disk": 2,
    "clock forward": 2,
    "clock back": 2,
    "clock of PostgreSQL forward": 1,
    "clock of PostgreSQL back": 1,
    "fail the model": 12,
    "fail the embedder": 6,
}


@dataclass
class Harm:
    """Does the faults that were chosen, one after another."""

    place: Place
    crew: Crew
    provider: ProviderServer | None
    random: Random
    done: Counter[str] = field(default_factory=Counter)

    def kinds(self) -> dict[str, Callable[[], bool]]:
        """What can be done here; each says whether it took effect."""
        kinds: dict[str, Callable[[], bool]] = {
            "kill a client": self._kill_client,
            "kill the worker": self.crew.kill_worker,
        }
        if self.place.disk is not None:
            kinds["fill the disk"] = self._fill
        if self.place.clock is not None:
            kinds |= {"clock forward": self._forward, "clock back": self._back}
        if self.provider is not None:
            kinds |= {"fail the model": self._fail_model, "fail the embedder": self._fail_embedder}
        return kinds | (self._kinds_of_server() if self.place.server is not None else {})

    def _kinds_of_server(self) -> dict[str, Callable[[], bool]]:
        kinds = {
            "kill PostgreSQL": self._kill_server,
            "cut connections": self._cut,
            "cut in an answer": self._cut_in_answer,
            "delay answers": self._delay,
        }
        if self.place.server_clock is not None:
            kinds["clock of PostgreSQL forward"] = self._server_forward
            kinds["clock of PostgreSQL back"] = self._server_back
        return kinds

    def choose(self, count: int) -> list[str]:
        """So many faults: each kind once, as far as there is room, and then by chance."""
        kinds = list(self.kinds())
        each = self.random.sample(kinds, min(count, len(kinds)))
        more = self.random.choices(kinds, [_WEIGHTS[kind] for kind in kinds], k=count - len(each))
        chosen = each + more
        self.random.shuffle(chosen)
        return chosen

    def do(self, kind: str) -> None:
        """Do it, and count it if it took effect; what a provider is to do counts when it does it."""
        if self.kinds()[kind]():
            self.done[kind] += 1

    def undo(self) -> None:
        """Leave nothing in the way of what is under way."""
        for clock in (self.place.clock, self.place.server_clock):
            if clock is not None:
                clock.set_right()
        if self.place.proxy is not None:
            self.place.proxy.mend()
        if self.provider is not None:
            mend(self.provider)
        if not self.place.is_answering():
            self.place.restart()

    def _pause(self, longest: float) -> None:
        time.sleep(self.random.uniform(0, longest))

    def _kill_client(self) -> bool:
        living = self.crew.living()
        return bool(living) and self.crew.kill(self.random.choice(living))

    def _fill(self) -> bool:
        assert self.place.disk is not None
        before = self.crew.refusals()
        fill(self.place.disk, leaving=self.random.choice((0, 0, 65_536)))
        self._pause(0.4)
        is_felt = wait_until(lambda: self.crew.refusals() > before, 1.0)
        make_room(self.place.disk)
        if not wait_until(self.place.is_answering, 2.0):
            self.place.restart()
        return is_felt

    def _forward(self) -> bool:
        return self._jump_forward(self.place.clock)

    def _back(self) -> bool:
        return self._jump_back(self.place.clock)

    def _server_forward(self) -> bool:
        return self._jump_forward(self.place.server_clock)

    def _server_back(self) -> bool:
        return self._jump_back(self.place.server_clock)

    def _jump_forward(self, clock: JumpingClock | None) -> bool:
        """By more than a day: for less, what waits for quiet may wait until that time comes again."""
        assert clock is not None
        clock.jump(self.random.randint(2, 6) * _DAY - min(clock.wrong_by, 0))
        return True

    def _jump_back(self, clock: JumpingClock | None) -> bool:
        """As far as it was fast, and in half of all cases some hours more."""
        assert clock is not None
        seconds = -max(clock.wrong_by, 0) - self.random.choice((0, self.random.randint(1, 20) * _HOUR))
        clock.jump(seconds)
        return seconds != 0

    def _fail_model(self) -> bool:
        return self._fail(CHAT, "fail the model")

    def _fail_embedder(self) -> bool:
        return self._fail(EMBEDDINGS, "fail the embedder")

    def _fail(self, pattern: str, kind: str) -> bool:
        """Have the next request fail; there is no effect until it comes."""
        assert self.provider is not None
        fault = FAULTS[self.random.choice(list(FAULTS))]

        def counted(app: ASGIApp) -> ASGIApp:
            self.done[kind] += 1
            return fault(app)

        self.provider.fail_next(pattern, counted)
        return False

    def _kill_server(self) -> bool:
        assert self.place.server is not None
        assert self.place.proxy is not None
        connections = self.place.proxy.connections
        self.place.server.kill()
        self._pause(0.2)
        self.place.restart()
        return connections > 0

    def _cut(self) -> bool:
        assert self.place.proxy is not None
        connections = self.place.proxy.cut(refuse=self.random.random() < 0.3)
        self._pause(0.1)
        self.place.proxy.mend()
        return connections > 0

    def _cut_in_answer(self) -> bool:
        proxy = self.place.proxy
        assert proxy is not None
        proxy.truncate_after(self.random.randrange(1, 20_000))
        is_felt = wait_until(lambda: proxy.has_truncated, 1.0)
        proxy.mend()
        return is_felt

    def _delay(self) -> bool:
        proxy = self.place.proxy
        assert proxy is not None
        proxy.delay(self.random.uniform(0.01, 0.1))
        before = proxy.passed
        self._pause(0.3)
        is_felt = proxy.passed > before
        proxy.cut()  # what is still on its way must not be overtaken
        proxy.mend()
        return is_felt
