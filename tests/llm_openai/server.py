"""A small OpenAI-compatible chat server around the project's own engine, run as a process of its own.

python -m tests.llm_openai.server MODEL.gguf [--strict] [--slow SECONDS]   prints its port

--strict refuses fields that OpenAI's protocol does not have, as some servers do. --slow waits before each token.
/stats tells what each request cost and whether its client hung up.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from engine import Engine, EngineSettings, Sampling

ODD = ("stream_options", "top_k", "min_p", "repetition_penalty")


class State:
    def __init__(self, engine: Engine, strict: bool, slow: float) -> None:
        self.engine, self.strict, self.slow = engine, strict, slow
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()


def prompt_ids(engine: Engine, messages: list[dict[str, str]]) -> list[int]:
    template, ids, after_system = engine.template, [], False
    for message in messages:
        match message["role"]:
            case "system":
                ids, after_system = template.system(message["content"]), True
            case "user":
                ids = ids + template.user(message["content"], after_system=after_system)
                after_system = False
            case "assistant":
                ids = ids + template.assistant(message["content"])
    return ids


def handler(state: State) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802
            if self.path == "/v1/models":
                self.send_json(200, {"data": [{"id": "smollm2"}]})
            elif self.path == "/stats":
                self.send_json(200, state.requests)
            else:
                self.send_json(404, {"error": {"message": "no such page"}})

        def do_POST(self) -> None:  # noqa: N802
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            odd = [field for field in ODD if field in request]
            if state.strict and odd:
                return self.send_json(400, {"error": {"message": f"unknown field {odd[0]}"}})
            about: dict[str, Any] = {"messages": request["messages"], "generated": 0, "hung_up": False, "done": False}
            state.requests.append(about)
            ids = prompt_ids(state.engine, request["messages"])
            session = state.engine.new_session()
            try:
                usage = session.append(ids)
                about |= {"prompt": len(ids), "cached": usage.referenced + usage.copied, "forwarded": usage.forwarded}
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                sampling = Sampling(max_tokens=request["max_tokens"], temperature=request["temperature"])
                for token in session.generate(sampling):
                    time.sleep(state.slow)
                    about["generated"] += 1
                    self.event({"choices": [{"index": 0, "delta": {"content": token.text}}]})
                if request.get("stream_options"):
                    counts = {"prompt_tokens": len(ids), "completion_tokens": about["generated"]}
                    counts["prompt_tokens_details"] = {"cached_tokens": about["cached"]}  # type: ignore[assignment]
                    self.event({"choices": [], "usage": counts})
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                about["hung_up"] = True
            finally:
                session.close()
                about["done"] = True
                self.close_connection = True

        def event(self, event: dict[str, Any]) -> None:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            self.wfile.flush()

        def send_json(self, code: int, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--slow", type=float, default=0.0)
    chosen = parser.parse_args()
    engine = Engine.load(chosen.model, EngineSettings(context=4096))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(State(engine, chosen.strict, chosen.slow)))
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # until the test lets go of us


if __name__ == "__main__":
    main()
