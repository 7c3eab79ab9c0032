"""Counts and times for Prometheus: no words, no names of who speaks."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.process_collector import ProcessCollector

from assistant.audio.sound_card import SoundStats
from assistant.live import FrontEnd, Status
from assistant.timeline.events import Event, EventType, Tokens, Turn
from engine import EngineStats

SECONDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_COUNTED = {
    EventType.RESUME: "false_alarms",
    EventType.REJECTED: "rejected",
    EventType.ERROR: "errors",
    EventType.WAKE: "wakes",
    EventType.INTERJECTION: "interjections",
    EventType.BACKCHANNEL: "backchannels",
    EventType.DRAFT_DROPPED: "drafts_dropped",
    EventType.COMPACTED: "compactions",
}
_HELP = {
    "false_alarms": "Onsets over an answer that turned out to be nothing",
    "rejected": "Transcripts that were not believed",
    "errors": "Errors told to the front ends",
    "wakes": "Wake words heard",
    "interjections": "Times the assistant cut in",
    "backchannels": "Listening noises of the user over an answer",
    "drafts_dropped": "Answers begun and revoked before they were heard",
    "compactions": "Times the past was shortened",
}
_KINDS = ("forwarded", "referenced", "copied", "generated", "discarded")


class Metrics(FrontEnd):
    """A front end that counts. `page` may be called from any thread."""

    def __init__(self, engine: Callable[[], EngineStats], sound: Callable[[], SoundStats]) -> None:
        disable_created_metrics()  # a time of birth beside each count says nothing here
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._engine, self._sound = engine, sound
        self._turns = Counter("crosstalk_turns", "Exchanges", registry=registry)
        self._interrupted = Counter("crosstalk_interruptions", "Answers cut off by the user", registry=registry)
        self._events = {
            name: Counter(f"crosstalk_{name}", text, registry=registry) for name, text in _HELP.items()
        }
        self._tokens = Counter(
            "crosstalk_tokens", "Tokens: computed, shared, copied, decoded, computed in vain", ["kind"],
            registry=registry,
        )  # fmt: skip
        self._voice = Histogram(
            "crosstalk_voice_to_voice_seconds", "From the user's last sound to the answer's first",
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._stages = Histogram(
            "crosstalk_stage_seconds", "From the user's last sound to a stage of the answer", ["stage"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._context = Gauge("crosstalk_context_tokens", "Tokens of the agreed past", registry=registry)
        self._listening = Gauge("crosstalk_muted", "1 while the microphone is muted", registry=registry)
        self._pages = Gauge("crosstalk_pool_pages", "Pages of the engine", ["group", "state"], registry=registry)
        self._rows = Gauge("crosstalk_engine_rows", "Rows the engine has computed", registry=registry)
        self._xruns = Gauge("crosstalk_xruns", "Times sound was lost, by side", ["side"], registry=registry)
        self._lost = Gauge("crosstalk_device_losses", "Times a sound device was lost", registry=registry)
        self._seen: Turn | None = None

    def event(self, event: Event) -> None:
        """See `FrontEnd.event`."""
        if (name := _COUNTED.get(event.type)) is not None:
            self._events[name].inc()

    def turn(self, turn: Turn) -> None:
        """See `FrontEnd.turn`: a turn's record comes again when its tokens are settled."""
        known = self._seen is not None and self._seen.index == turn.index
        before = self._seen.tokens if known and self._seen is not None else Tokens()
        for kind in _KINDS:
            self._tokens.labels(kind).inc(max(0, getattr(turn.tokens, kind) - getattr(before, kind)))
        self._context.set(turn.tokens.context)
        if not known:
            self._turns.inc()
            self._interrupted.inc(turn.interrupted)
            latency = turn.latency
            if turn.user_text and latency.voice_to_voice is not None:
                self._voice.observe(max(0.0, latency.voice_to_voice))
            for stage in ("endpoint", "asr", "first_token", "first_clause", "tts"):
                if (seconds := getattr(latency, stage)) is not None:
                    self._stages.labels(stage).observe(max(0.0, seconds))
        self._seen = turn

    def status(self, status: Status) -> None:
        """See `FrontEnd.status`."""
        self._listening.set(status.muted)

    def page(self) -> bytes:
        """All of it in Prometheus's text format."""
        engine, sound = self._engine(), self._sound()
        self._rows.set(engine.rows)
        for number, pool in enumerate(engine.pools):
            for state, pages in (("held", pool.held), ("cached", pool.cached), ("all", pool.pages)):
                self._pages.labels(str(number), state).set(pages)
        for side, count in (("input", sound.input_xruns), ("output", sound.output_xruns + sound.underflows)):
            self._xruns.labels(side).set(count)
        self._lost.set(sound.lost)
        return generate_latest(self._registry)
