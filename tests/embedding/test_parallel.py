"""Working in parallel, in order, and not far ahead."""

import threading

import pytest

from searchsvc.embedding.parallel import AHEAD, cores, map_in_order


def test_there_is_at_least_one_core():
    assert cores() >= 1


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_results_come_in_the_order_of_their_items(workers):
    assert list(map_in_order(lambda item: item * 2, range(50), workers)) == list(range(0, 100, 2))


def test_what_is_not_asked_for_is_not_computed_far_ahead():
    begun = []
    results = map_in_order(begun.append, range(1000), workers=2)
    for _ in range(5):
        next(results)
    results.close()
    assert len(begun) <= 5 + 2 * AHEAD


def test_an_error_is_raised_at_the_turn_of_its_item_and_leaves_no_thread():
    before = threading.active_count()
    results = map_in_order(lambda item: 1 / item, [2, 1, 0, 4], workers=2)
    assert [next(results), next(results)] == [0.5, 1.0]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert threading.active_count() == before
