"""Which part of a growing utterance is decoded when: a policy without threads, clocks or models.

    push sound ─► next_job ─► (somebody decodes it) ─► done ─► transcript
                     │
                     ├─ PARTIAL  every 300 ms of new speech, the stable words as the decoder's prefix
                     └─ FINAL    as soon as a pause begins, of everything since the last cut

The utterance is *cut* when it goes on after a pause and has become long: the words of the FINAL at that
pause are committed and their sound is never decoded again, so the next partial costs what it cost at
the beginning. The cut lies in the pause: no gap, no doubled word. Without any pause it is made at
the quietest spot before the 30 s window is full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assistant.audio.constants import FRAME, samples
from assistant.ears.errors import EarsSettingsError
from assistant.ears.hypothesis import Hypothesis, Mode, join_words
from assistant.ears.stabiliser import Stabiliser


@dataclass(frozen=True)
class UtteranceSettings:
    """When to decode; milliseconds of sound."""

    first_ms: int = 300
    """Speech before the first partial: a barge-in waits for its words."""
    every_ms: int = 300
    """New speech before another partial."""
    pause_ms: int = 60
    """Silence after which the final is decoded ahead of the endpoint."""
    cut_after_ms: int = 8_000
    """From this length on an utterance that goes on after a pause is cut there."""
    cut_pause_ms: int = 160
    """Shortest pause that may be cut."""
    max_ms: int = 24_000
    """Without a pause it is cut by force at this length."""
    final_mode: Mode = Mode.FINAL
    force_within_ms: int = 3_000
    """The forced cut is at the quietest spot of so much sound at the end."""

    def __post_init__(self) -> None:
        if not self.cut_after_ms < self.max_ms <= 28_000:
            raise EarsSettingsError("Utterances need cut_after_ms < max_ms <= 28000: Whisper hears 30 s at most.")


UNHURRIED = UtteranceSettings(
    first_ms=1 << 30,
    every_ms=1 << 30,
    pause_ms=300,
    cut_after_ms=15_000,
    max_ms=28_000,
    final_mode=Mode.FULL,
)
"""For recordings, where nobody waits for words: no partials, long pieces, and the full window, which
alone does not lose the end of pieces beyond 15 s."""

LATEST_NOTICE = samples(320)


@dataclass(frozen=True)
class Pause:
    """Silence inside the utterance, in samples of the microphone clock."""

    start: int
    end: int


@dataclass(frozen=True)
class DecodeJob:
    """Sound to be decoded, all the decoder needs to know."""

    pcm: np.ndarray
    mode: Mode
    prefix_words: tuple[str, ...]
    start: int
    end: int
    """Samples of the microphone clock: the job is pcm of [start, end)."""
    voice_end: int
    """The last sound of speech when the job was made."""
    cut: bool
    """The words become committed whatever comes after."""
    segment: int


@dataclass(frozen=True)
class Transcript:
    """What is known of the utterance so far."""

    committed: tuple[str, ...] = ()
    """Words of cut-off pieces: they cannot change."""
    stable: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    final: bool = False
    """A careful decode covers all speech so far."""
    voice_end: int = 0
    """Speech up to this sample is covered."""
    hypothesis: Hypothesis | None = None
    """The decode behind the newest words."""

    @property
    def words(self) -> tuple[str, ...]:
        return self.committed + self.stable + self.unstable

    @property
    def sure(self) -> tuple[str, ...]:
        """Words good enough to be prefilled."""
        return self.committed + self.stable

    @property
    def text(self) -> str:
        return join_words(self.words)


class UtteranceTranscriber:
    """The policy object of one utterance. At most one job is out at a time."""

    def __init__(self, start: int, pre_roll: np.ndarray, settings: UtteranceSettings | None = None) -> None:
        """`start` is the sample count of the first sample of `pre_roll` (float32 [n], may be empty)."""
        self.settings = settings or UtteranceSettings()
        self.start = start
        self.transcript = Transcript(voice_end=start)
        self._blocks = [pre_roll]
        self._segment_start = start
        self._end = start + len(pre_roll)
        self._voice_end = self._end
        self._segment = 0
        self._state = Stabiliser()
        self._job: DecodeJob | None = None
        self._decoded_to = start
        self._final: DecodeJob | None = None
        self._pause = Pause(start, start)

    @property
    def end(self) -> int:
        """The sample after the last one pushed."""
        return self._end

    def push(self, pcm: np.ndarray, voice_end: int, voice_start: int | None = None) -> None:
        """More sound (float32 [n]). `voice_end`: the sample after the last sound of speech so far;
        `voice_start`: where the present stretch of speech began, if the caller knows."""
        silent_from, noticed = self._voice_end, self._end
        self._blocks.append(pcm)
        self._end += len(pcm)
        self._voice_end = max(self._voice_end, min(voice_end, self._end))
        if self._voice_end > silent_from and noticed > silent_from:
            # A detector may notice speech 300 ms late; without better knowledge it began that early.
            self._pause = Pause(silent_from, voice_start or max(silent_from, noticed - LATEST_NOTICE))
            if self._final is not None:
                self._resume()

    def next_job(self) -> DecodeJob | None:
        """What should be decoded now, if anything; call it after each push or result."""
        if self._job is not None:
            return None
        rules = self.settings
        if self._end - self._segment_start >= samples(rules.max_ms):
            return self._issue(rules.final_mode, self._quietest(), cut=True)
        silence = self._end - self._voice_end
        if silence >= samples(rules.pause_ms):
            return None if self._covered() else self._issue(rules.final_mode, self._end)
        fresh = self._end - max(self._decoded_to, self._segment_start)
        needed = rules.every_ms if self._state.last or self.transcript.committed else rules.first_ms
        return self._issue(Mode.PARTIAL, self._end) if fresh >= samples(needed) else None

    def final_job(self) -> DecodeJob | None:
        """The endpoint is decided: the careful decode still missing, or None when `transcript` is final.

        Takes the place of a job that is out; that one's result will be ignored.
        """
        if self._covered():
            return None
        self._job = None
        rules = self.settings
        if self._end - self._segment_start > samples(rules.max_ms):
            return self._issue(rules.final_mode, self._quietest(), cut=True)
        return self._issue(rules.final_mode, self._end)

    def done(self, job: DecodeJob, heard: Hypothesis) -> Transcript:
        """Take the result of a job; a result that is no longer wanted changes nothing."""
        if job is not self._job:
            return self.transcript
        self._job = None
        self._decoded_to = job.end
        # A piece of nothing but noise adds nothing, whatever the model made up for it.
        words = () if heard.silent else heard.words
        if job.cut:
            self._commit(words, job.end, heard)
        elif job.mode is not Mode.PARTIAL:
            self._state = self._state.final(words)
            resumed = self._voice_end > job.voice_end
            self._final = job
            self._show(heard, final=not resumed, voice_end=job.voice_end)
            if resumed:
                self._resume()
        elif not heard.looped:
            self._state = self._state.next(words)
            self._show(heard, final=False, voice_end=job.voice_end)
        return self.transcript

    def drop(self, job: DecodeJob) -> None:
        """The job was not done (cancelled): it may be asked for again."""
        if job is self._job:
            self._job = None

    def _covered(self) -> bool:
        return self.transcript.final and self.transcript.voice_end >= self._voice_end

    def _resume(self) -> None:
        """Speech goes on after a pause whose final is known: cut there, or open its last word again."""
        final, self._final = self._final, None
        assert final is not None
        rules, pause = self.settings, self._pause
        long_enough = final.end - self._segment_start >= samples(rules.cut_after_ms)
        clean = final.end <= pause.end and pause.end - pause.start >= samples(rules.cut_pause_ms)
        if long_enough and clean and pause.start == final.voice_end:
            self._commit(self._state.agreement.words, final.end, self.transcript.hypothesis)
            return
        self._state = self._state.reopened()
        self._show(self.transcript.hypothesis, final=False, voice_end=self.transcript.voice_end)

    def _commit(self, words: tuple[str, ...], end: int, heard: Hypothesis | None) -> None:
        rest = self._sound(end, self._end)
        committed = mend(self.transcript.committed, words) + words
        self._blocks = [rest]
        self._segment_start = end
        self._segment += 1
        self._decoded_to = end
        self._state = Stabiliser()
        self._final = None
        covered = self._voice_end <= end
        self.transcript = Transcript(committed, (), (), covered, min(end, self._voice_end), heard)

    def _show(self, heard: Hypothesis | None, *, final: bool, voice_end: int) -> None:
        agreed = self._state.agreement
        self.transcript = Transcript(self.transcript.committed, agreed.stable, agreed.unstable, final, voice_end, heard)

    def _issue(self, mode: Mode, end: int, *, cut: bool = False) -> DecodeJob:
        prefix = self._state.agreement.stable if mode is Mode.PARTIAL else ()
        self._job = DecodeJob(
            pcm=self._sound(self._segment_start, end),
            mode=mode,
            prefix_words=prefix,
            start=self._segment_start,
            end=end,
            voice_end=min(self._voice_end, end),
            cut=cut,
            segment=self._segment,
        )
        return self._job

    def _sound(self, start: int, end: int) -> np.ndarray:
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0][start - self._segment_start : end - self._segment_start]

    def _quietest(self) -> int:
        """The middle of the quietest frame pair near the end of the longest piece Whisper can hear."""
        high = min(self._end, self._segment_start + samples(self.settings.max_ms))
        return quietest(self._sound(self._segment_start, high), samples(self.settings.force_within_ms)) + (
            self._segment_start
        )


def mend(committed: tuple[str, ...], following: tuple[str, ...]) -> tuple[str, ...]:
    """The committed words, without the full stop the model put at a cut when the sentence went on."""
    if committed and following and following[0][:1].islower():
        last = committed[-1]
        if last.endswith(".") and last.rstrip("."):
            return (*committed[:-1], last.rstrip("."))
    return committed


def quietest(pcm: np.ndarray, within: int) -> int:
    """Index of the quietest spot (60 ms mean) of the last `within` samples of float32 [n].

    The very end is left out, so something is always cut off and something stays.
    """
    width = 3 * FRAME
    tail = pcm[-within:] if within < len(pcm) else pcm
    frames = len(tail) // FRAME
    if frames < 4:
        return len(pcm)
    power = np.square(tail[: frames * FRAME]).reshape(frames, FRAME).mean(axis=1)
    smooth = np.convolve(power, np.ones(3) / 3, mode="valid")
    at = int(np.argmin(smooth)) * FRAME + width // 2
    return len(pcm) - len(tail) + at
