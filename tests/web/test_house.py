"""Tokens, cookies and places."""

from __future__ import annotations

from assistant.web.house import House, Place, Refusal


class Session:
    def __init__(self, front) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def closed(place: Place) -> bool:
    return place.session.closed  # type: ignore[attr-defined]


def house(places: int = 1, now: list[float] | None = None) -> House:
    now = now or [0.0]
    return House(Session, "default", places, lambda: now[0])  # type: ignore[arg-type]


def test_a_token_is_good_once() -> None:
    one = house()
    cookie = one.admit(one.token)
    assert isinstance(cookie, str) and one.place(cookie) is not None
    assert one.admit(one.token) is Refusal.UNKNOWN
    assert one.admit("") is Refusal.UNKNOWN and one.admit("é") is Refusal.UNKNOWN
    assert one.place("") is None and one.place("wrong") is None


def test_a_new_token_lets_the_same_person_in_from_another_browser() -> None:
    one = house()
    first = one.admit(one.token)
    old = one.token
    second = one.admit(one.new_token())
    assert isinstance(first, str) and isinstance(second, str) and first != second
    assert one.place(first) is one.place(second)
    assert one.admit(old) is Refusal.UNKNOWN


def test_places_are_separate_and_limited() -> None:
    two = house(2)
    cookies = [two.admit(two.token), two.admit(two.token)]
    assert two.admit(two.token) is Refusal.UNKNOWN
    places = [two.place(str(cookie)) for cookie in cookies]
    assert places[0] is not places[1]
    for place in places:
        assert place is not None
        place.client = object()
    assert two.admit(two.new_token()) is Refusal.FULL


def test_the_place_that_was_left_first_is_given_on() -> None:
    now = [0.0]
    two = house(2, now)
    cookies = [str(two.admit(two.token)) for _ in range(2)]
    first, second = (two.place(cookie) for cookie in cookies)
    assert first is not None and second is not None
    client = object()
    first.client = second.client = client
    now[0] = 5.0
    two.leave(second, client)
    now[0] = 9.0
    two.leave(first, object())  # an older page that goes is not the one that counts
    assert first.client is client
    newcomer = two.admit(two.new_token())
    assert isinstance(newcomer, str) and closed(second) and not closed(first)
    assert two.place(cookies[1]) is None and two.place(cookies[0]) is first
    two.close()
    assert closed(first)
