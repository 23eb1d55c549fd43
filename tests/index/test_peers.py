from types import SimpleNamespace

import pytest

from searchsvc.index.build import _peers


def sizes(*counts):
    found = _peers([SimpleNamespace(sections=range(count)) for count in counts])
    return [len(segment.sections) for segment in found]


@pytest.mark.parametrize(
    ("counts", "merged"),
    [
        ((25_000, 25_000, 24_000, 23_000), [25_000, 25_000, 24_000, 23_000]),
        ((100_000, 5), []),
        ((100_000, 20_000), []),
        ((100_000, 30_000), [100_000, 30_000]),
        ((4_000, 4_000), []),
        ((150_000, 60_000, 40_000), [150_000, 40_000]),
        ((25_000,), []),
        ((), []),
    ],
)
def test_large_segments_of_about_one_size_are_merged(counts, merged):
    assert sizes(*counts) == merged
