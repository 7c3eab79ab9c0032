"""The page pool alone: no model, no tensors."""

from collections import Counter

import pytest

from engine.errors import OutOfPages
from engine.pages.page import ROOT, chain
from engine.pages.pool import PagePool
from engine.pages.validator import check_pool


def put(pool: PagePool, tokens: list[int], parent: bytes = ROOT, depth: int = 0):
    (page,) = pool.allocate(1, [(parent, depth)])
    pool.begin_write(page)
    pool.claim(page, tokens)
    pool.fill(page, len(tokens))
    return page


def check(pool: PagePool, *held) -> None:
    check_pool(pool, Counter(page.number for page in held))


def test_a_released_page_is_found_again_by_its_tokens():
    pool = PagePool(4, 4)
    page = put(pool, [1, 2, 3, 4])
    pool.release(page)
    check(pool)
    assert pool.find(ROOT, [1, 2, 3, 4]) == (page, 4)
    assert pool.find(ROOT, [1, 2, 9]) == (page, 2)
    assert pool.find(chain(ROOT, [0]), [1, 2, 3, 4]).page is None, "the parent is part of the name"


def test_validity_is_what_is_filled_not_what_is_claimed():
    pool = PagePool(2, 4)
    (page,) = pool.allocate(1, [(ROOT, 0)])
    pool.claim(page, [1, 2, 3, 4])
    pool.begin_write(page)
    pool.fill(page, 2)
    assert pool.find(ROOT, [1, 2, 3, 4]) == (page, 2)
    pool.release(page)
    assert page.tokens == [1, 2], "a claim that was never filled is taken back"
    check(pool)


def test_leaves_go_first_and_the_oldest_tree_before_the_newer():
    pool = PagePool(4, 2)
    old_root = put(pool, [1, 2])
    old_leaf = put(pool, [3, 4], chain(ROOT, [1, 2]), 1)
    new_root = put(pool, [5, 6])
    new_leaf = put(pool, [7, 8], chain(ROOT, [5, 6]), 1)
    for pages in ((old_leaf, old_root), (new_leaf, new_root)):
        pool.touch()
        for page in pages:
            pool.release(page)
    evicted = [pool.allocate(1, [(ROOT, 0)])[0] for _ in range(4)]
    assert evicted == [old_leaf, old_root, new_leaf, new_root]


def test_held_pages_are_never_evicted_and_the_limit_is_checked_first():
    pool = PagePool(3, 2)
    mine = put(pool, [1, 2])
    other = put(pool, [3, 4])
    pool.release(other)
    with pytest.raises(OutOfPages, match="memory_bytes"):
        pool.allocate(3, [(ROOT, 0)] * 3)
    check(pool, mine)
    assert pool.find(ROOT, [3, 4]).page is other, "a refused allocation evicts nothing"
    assert mine not in pool.allocate(2, [(ROOT, 0)] * 2)


def test_an_unwritten_page_gets_its_old_content_back():
    pool = PagePool(1, 2)
    page = put(pool, [1, 2])
    pool.release(page)
    pool.allocate(1, [(ROOT, 0)])
    pool.claim(page, [8, 9])
    assert pool.find(ROOT, [1, 2]).page is None
    pool.release(page)
    assert pool.find(ROOT, [1, 2]) == (page, 2)
    assert pool.find(ROOT, [8]).page is None
    check(pool)


def test_a_written_page_does_not():
    pool = PagePool(1, 2)
    page = put(pool, [1, 2])
    pool.release(page)
    pool.allocate(1, [(ROOT, 0)])
    pool.claim(page, [8, 9])
    pool.begin_write(page)
    pool.release(page)
    assert pool.find(ROOT, [1, 2]).page is None
    check(pool)


def test_two_full_pages_never_share_a_hash():
    pool = PagePool(3, 2)
    first, second = put(pool, [1, 2]), put(pool, [1, 2])
    check(pool, first, second)
    assert pool.find(ROOT, [1, 2]).page is first
    pool.release(second)
    assert second.filled == 0, "the duplicate is worth nothing once released"
    pool.release(first)
    check(pool)


def test_cutting_a_full_page_makes_it_partial():
    pool = PagePool(2, 4)
    page = put(pool, [1, 2, 3, 4])
    pool.cut(page, 2)
    assert pool.find(ROOT, [1, 2, 3, 4]) == (page, 2)
    pool.claim(page, [7])
    pool.fill(page, 3)
    assert pool.find(ROOT, [1, 2, 7, 8]) == (page, 3)
    check(pool, page)
