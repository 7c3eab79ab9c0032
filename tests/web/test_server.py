"""The real server with real models, and visitors who behave and who do not."""

from __future__ import annotations

import subprocess
import sys

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from assistant.web.run import PortError, bind
from tests.web.conftest import Serve
from tests.web.visitor import Visitor, enter, get


def test_only_the_token_opens_the_page(serve: Serve) -> None:
    service = serve()
    for path in ("/", "/?token=", "/?token=guess"):
        answer = get(service.port, path)
        assert answer.status == 403 and "press Enter" in answer.body
    cookie = enter(service.port, service.house.token)
    page = get(service.port, "/", {"Cookie": cookie})
    assert page.status == 200 and "Talk, and cut in" in page.body
    assert "HttpOnly" in get(service.port, f"/?token={service.house.new_token()}").header("set-cookie")
    again = get(service.port, f"/?token={service.house.token}")
    assert again.status == 403 and "can be used once" in again.body


def test_static_files_are_the_folder_and_nothing_else(serve: Serve) -> None:
    service = serve()
    style = get(service.port, "/static/style.css")
    assert style.status == 200 and style.header("content-type").startswith("text/css")
    assert "default-src 'self'" in style.header("content-security-policy")
    for path in ("/static/../server.py", "/static/%2e%2e%2fserver.py", "/static/server.py", "/static/", "/etc/passwd"):
        assert get(service.port, path).status == 404


def test_other_names_for_this_machine_are_refused(serve: Serve) -> None:
    service = serve()
    for host in ("evil.example", f"evil.example:{service.port}", f"[::1]:{service.port}"):
        assert get(service.port, f"/?token={service.house.token}", {"Host": host}).status == 421
    assert get(service.port, "/static/app.js", {"Host": f"localhost:{service.port}"}).status == 200


def test_it_listens_on_this_machine_only() -> None:
    with bind(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_wrong_origin_and_wrong_cookie_get_no_socket(serve: Serve) -> None:
    service = serve()
    cookie = enter(service.port, service.house.token)
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{service.port}", "http://127.0.0.1:1"):
        with pytest.raises(InvalidStatus, match="403"):
            Visitor(service.port, cookie, origin)
    for wrong in ("", f"crosstalk_{service.port}=guess"):
        visitor = Visitor(service.port, wrong)
        with pytest.raises(ConnectionClosed) as closed:
            visitor.until("hello")
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 4003


def test_a_typed_turn_is_answered_and_a_second_tab_finds_it(serve: Serve) -> None:
    service = serve()
    cookie = enter(service.port, service.house.token)
    first = Visitor(service.port, cookie)
    hello = first.until("hello")
    assert hello["persona"] == "default" and {"name", "about"} == hello["personas"][0].keys() and not hello["lines"]
    first.ask(type="say", text="What is the capital of France?")
    first.until("event", event="user_turn")
    said = first.until("line", who="assistant")
    assert "Paris" in said["text"]

    second = Visitor(service.port, cookie)
    lines = second.until("hello")["lines"]
    assert [line["who"] for line in lines][:2] == ["user", "assistant"] and "Paris" in lines[1]["text"]
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            first.until("never")
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4001
    second.ask(type="stop")
    second.until("status", phase="listening")
    second.close()


def test_a_persona_that_is_not_there_is_named(serve: Serve) -> None:
    service = serve()
    visitor = Visitor(service.port, enter(service.port, service.house.token))
    visitor.ask(type="persona", text="nobody")
    assert "no persona 'nobody'; there are" in visitor.until("error")["text"]
    visitor.ask(type="persona", text="default")
    visitor.until("event", event="persona", text="default")
    visitor.close()


def test_a_client_that_sends_garbage_is_told_and_then_sent_away_alone(serve: Serve) -> None:
    service = serve(sessions=2)
    good = Visitor(service.port, enter(service.port, service.house.token))
    bad = Visitor(service.port, enter(service.port, service.house.token))
    bad.socket.send(b"garbage")
    assert "644 bytes, this one 7" in bad.until("error")["text"]
    with pytest.raises(ConnectionClosed) as closed:
        for _ in range(20):
            bad.ask(type="fly")
        while True:
            bad.until("never")
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
    for _ in range(5):
        good.frame()
    assert good.until("status", phase="listening")
    good.close()


def test_a_flood_is_cut_off_and_a_huge_message_is_never_read(serve: Serve) -> None:
    service = serve()
    cookie = enter(service.port, service.house.token)
    flood = Visitor(service.port, cookie)
    with pytest.raises(ConnectionClosed):
        for _ in range(5000):
            flood.frame(0.1)
        while True:
            flood.until("never")
    huge = Visitor(service.port, cookie)
    with pytest.raises(ConnectionClosed) as closed:
        huge.socket.send(b"x" * 100_000)
        while True:
            huge.until("never")
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
    after = Visitor(service.port, cookie)  # the conversation has survived both
    after.frame()
    assert after.until("hello")
    after.close()


def test_two_people_have_two_conversations_on_one_engine(serve: Serve) -> None:
    service = serve(sessions=2)
    visitors = [Visitor(service.port, enter(service.port, service.house.token)) for _ in range(2)]
    assert get(service.port, f"/?token={service.house.token}").status == 403
    assert get(service.port, f"/?token={service.house.new_token()}").status == 503
    visitors[0].ask(type="say", text="Hello there.")
    visitors[0].until("line", who="user", text="Hello there.")
    visitors[1].frame()
    assert visitors[1].until("hello")["lines"] == []
    for visitor in visitors:
        visitor.close()


def test_a_taken_port_is_one_line() -> None:
    with bind(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortError, match=f"port {port} cannot be used"):
            bind(port)
        command = [sys.executable, "-m", "assistant.cli", "web", "--port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1 and "give another with --port" in ended.stderr
