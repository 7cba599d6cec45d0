"""What was read a moment ago is kept for a moment, and never too much of it."""

from recollect.server.access.cache import ExpiringCache


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_value_is_kept_until_its_time_is_over() -> None:
    clock = Clock()
    kept: ExpiringCache[str, int] = ExpiringCache(seconds=1, clock=clock)
    kept.put("a", 1)
    clock.now += 0.999
    assert kept.get("a") == 1
    clock.now += 0.001
    assert kept.get("a") is None


def test_reading_does_not_prolong_it() -> None:
    clock = Clock()
    kept: ExpiringCache[str, int] = ExpiringCache(seconds=1, clock=clock)
    kept.put("a", 1)
    clock.now += 0.6
    assert kept.get("a") == 1
    clock.now += 0.6
    assert kept.get("a") is None


def test_the_oldest_goes_when_there_are_too_many() -> None:
    kept: ExpiringCache[int, int] = ExpiringCache(max_size=2)
    kept.put(1, 1)
    kept.put(2, 2)
    kept.put(1, 1)
    kept.put(3, 3)
    assert [kept.get(number) for number in (1, 2, 3)] == [1, None, 3]
    assert len(kept) == 2


def test_what_is_forgotten_is_gone() -> None:
    kept: ExpiringCache[str, int] = ExpiringCache()
    kept.put("a", 1)
    kept.remove("a")
    kept.remove("b")
    assert kept.get("a") is None
