"""A record holds what the ranking needs of a text, survives storing, and damage to it is noticed."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from recollect.memory.search.corpus import Corpus
from recollect.memory.search.optimizing import next_to_optimize
from recollect.memory.search.passages import split
from recollect.memory.search.query import understand
from recollect.memory.search.ranking import rank
from recollect.memory.search.records import (
    CorruptRecordsError,
    OutdatedRecordsError,
    Place,
    Record,
    check,
    decode,
    make_record,
    time_from_numbers,
)

LONG = "The cellist Ada moved to Lisbon in May 2023. " * 20
NOON = datetime(2023, 5, 7, 12, 30, 15, 250_000, UTC)


def corpus_of(texts: list[str]) -> Corpus:
    corpus = Corpus()
    batch = decode([make_record(text, Place("user", number, NOON)) for number, text in enumerate(texts)])
    corpus.append(batch, [("talk", str(number)) for number in range(len(texts))], ["talk"] * len(texts))
    return corpus


def test_a_record_keeps_the_place_and_the_traits_of_a_text() -> None:
    corpus = corpus_of(["Did you see Ada yesterday?", "I like tea."])
    document = corpus.document(0)
    assert (document.id, document.speaker, document.session) == ('["talk", "0"]', "user", "talk")
    assert (document.position, document.time) == (0, NOON)
    assert corpus.column("question").tolist() == [1.0, 0.0]
    assert corpus.column("names").tolist() == [0.5, 0.0]
    assert corpus.column("time").tolist() == [True, False]
    assert corpus.column("length").tolist() == [5, 3]


@pytest.mark.parametrize(
    "time",
    [
        None,
        NOON,
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
        datetime(2023, 5, 7, 12),  # noqa: DTZ001 - a time without a zone is kept as such
        NOON.astimezone(timezone(timedelta(hours=-3, minutes=-30))),
    ],
)
def test_times_come_back(time: datetime | None) -> None:
    (head,) = decode([make_record("text", Place("user", 0, time))]).heads
    assert time_from_numbers(int(head["micros"]), int(head["offset"])) == time


def test_a_record_holds_no_words() -> None:
    stored = b"".join(make_record(LONG, Place("user", 0, NOON)))
    for word in ("cell", "Ada", "Lisbon", "lisbon", "moved"):
        assert word.encode() not in stored


def test_passages_are_found_by_their_terms() -> None:
    text = f"{'The weather is fine today. ' * 25}\n\nMy sister plays the cello every weekend in the harbour. "
    corpus = corpus_of([text, "nothing of that"])
    assert corpus.column("first_passage").tolist() == [0, len(split(text))]
    (cello,) = corpus.postings_of(["cello"])
    assert cello.passages.tolist() == [len(split(text)) - 1]
    (weather,) = corpus.rows_of(["weather"])
    assert [each.tolist() for each in weather] == [[0], [25]]


def test_many_occurrences_are_counted_up_to_a_limit() -> None:
    (found,) = corpus_of(["tea " * 150]).rows_of(["tea"])
    assert found[1].tolist() == [150]


def test_vectors_are_nearly_what_they_were() -> None:
    vectors = np.random.default_rng(1).standard_normal((len(split(LONG)), 64)).astype(np.float32)
    record = make_record(LONG, Place(), vectors)
    corpus = Corpus()
    corpus.append(decode([record]), ["one"], [None])
    exact = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    read = corpus.vectors.read(range(len(vectors)))
    assert np.abs(read - exact).max() < 0.01
    similar = corpus.similarities(vectors[0])
    assert similar is not None
    assert similar == pytest.approx(exact @ exact[0], abs=0.01)


def test_records_with_and_without_vectors_go_together() -> None:
    vector = np.array([[0.6, 0.8]], np.float32)
    records = [make_record("a", Place()), make_record("b", Place(), vector), make_record("c", Place())]
    corpus = Corpus()
    corpus.append(decode(records), ["a", "b", "c"], [None] * 3)
    assert corpus.column("has_vector").tolist() == [False, True, False]
    assert corpus.similarities(vector[0]) == pytest.approx([0.0, 1.0, 0.0], abs=0.01)


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record._replace(head=b""),
        lambda record: record._replace(head=record.head[:50]),
        lambda record: record._replace(head=b"X" + record.head[1:]),
        lambda record: record._replace(terms=record.terms[:-1]),
        lambda record: record._replace(counts=record.counts + b"1"),
        lambda record: record._replace(vectors=b"123"),
        lambda record: record._replace(terms=None),
        lambda record: record._replace(counts="text"),
    ],
)
def test_damaged_records_are_named(damage: object) -> None:
    sound = make_record(LONG, Place("user", 0, NOON))
    damaged = damage(sound)  # type: ignore[operator]
    with pytest.raises(CorruptRecordsError) as caught:
        decode([sound, damaged, sound])
    assert caught.value.places == {1}
    with pytest.raises(CorruptRecordsError):
        check(damaged)


def test_a_changed_byte_is_noticed_by_the_check() -> None:
    sound = make_record(LONG, Place("user", 0, NOON), np.ones((len(split(LONG)), 8), np.float32))
    check(sound)
    for name, part in sound._asdict().items():
        changed = part[:-1] + bytes([part[-1] ^ 1])
        with pytest.raises(CorruptRecordsError):
            check(sound._replace(**{name: changed}))


def test_a_record_of_another_version_is_outdated_and_not_corrupt() -> None:
    sound = make_record("text", Place())
    other = sound._replace(head=sound.head[:1] + b"\xff" + sound.head[2:])
    with pytest.raises(OutdatedRecordsError):
        decode([other])
    check(other)


def test_no_records_at_all() -> None:
    assert len(decode([])) == 0


def test_misspelled_and_unfinished_words_have_variants() -> None:
    corpus = corpus_of(["We deploy on kubernetes.", "The invoice is late."])
    assert corpus.variants_of("invoci") == ["invoic"]
    assert corpus.variants_of("kubernt") == ["kubernet"]
    assert corpus.variants_of("invoi") == ["invoic"]
    (prefix,) = corpus.variants_of("kubectl")
    (found,) = corpus.rows_of([prefix])
    assert found[0].tolist() == [0]
    assert corpus.variants_of("zebra") == []
    assert corpus.variants_of("你好") == []


def test_an_optimized_corpus_finds_the_same() -> None:
    words = [f"word{number}" for number in range(300)]
    random = np.random.default_rng(2)
    texts = [" ".join(random.choice(words, 30)) for _ in range(3000)]
    plain, optimized = corpus_of(texts), corpus_of(texts)
    pieces = 0
    while (piece := next_to_optimize(optimized)) is not None:
        piece.optimize()(optimized)
        pieces += 1
    assert pieces
    for corpus in (plain, optimized):
        corpus.remove([("talk", str(number)) for number in range(0, 3000, 7)])
        more = make_record("word7 word8 word9 word7", Place("user", 9000, NOON))
        corpus.append(decode([more]), [("other", "1")], ["other"])
    query = understand("word7 and word8 and word250")
    assert rank(query, plain) == rank(query, optimized)
    assert (
        plain.rows_with_all(["word7", "word8"]).tolist()
        == optimized.rows_with_all(["word7", "word8"]).tolist()
    )


def test_the_work_on_a_piece_is_dropped_if_the_corpus_has_changed() -> None:
    texts = [f"apple pear{number % 50} plum{number % 70} cherry" * 3 for number in range(4000)]
    corpus = corpus_of(texts)
    piece = next_to_optimize(corpus)
    assert piece is not None
    change = piece.optimize()
    corpus.remove([("talk", "0")])
    change(corpus)
    (found,) = corpus.rows_of(["appl"])
    assert found[0].tolist() == list(range(3999))


def test_signs_find_the_nearest_of_many_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.memory.search import passage_vectors

    monkeypatch.setattr(passage_vectors, "_ALL", 1000)
    monkeypatch.setattr(passage_vectors, "_MANY", 500)
    monkeypatch.setattr(passage_vectors, "_NEAREST", 300)
    random = np.random.default_rng(3)
    vectors = random.standard_normal((5100, 256)).astype(np.float32)
    asked = random.standard_normal(256).astype(np.float32)
    near = np.arange(50, 5100, 500)
    vectors[near] = asked + random.standard_normal((len(near), 256))
    records = [make_record("x", Place(), vector[None]) for vector in vectors]
    corpus = Corpus()
    corpus.append(decode(records[:5000]), [str(number) for number in range(5000)], [None] * 5000)
    while (piece := next_to_optimize(corpus)) is not None:
        piece.optimize()(corpus)
    corpus.append(decode(records[5000:]), [str(number) for number in range(5000, 5100)], [None] * 100)
    similar = corpus.similarities(asked)
    assert similar is not None
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    exact = unit @ (asked / np.linalg.norm(asked))
    assert similar[near] == pytest.approx(exact[near], abs=0.01)
    assert set(np.argsort(-similar)[: len(near)]) == set(near)
    others = np.delete(np.arange(5100), near)
    assert np.corrcoef(similar[others], exact[others])[0, 1] > 0.6


def test_the_parts_of_a_record_are_bytes() -> None:
    assert all(type(part) is bytes for part in make_record("text", Place()))
    assert Record._fields == ("head", "terms", "counts", "vectors")
