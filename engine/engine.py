"""`Engine`: a model, its pages and the worker that serves all sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError
from engine.jobs import Slot
from engine.loading import ModelFile, read_model
from engine.pages.sequence import Sequence as Tokens
from engine.pages.store import KVStore
from engine.pages.validator import check_store
from engine.scheduler import Scheduler
from engine.session import Session
from engine.settings import EngineSettings, Priority
from engine.sizing import plan_groups
from engine.text.template import ChatFragments
from engine.text.tokenizer import Tokenizer
from engine.worker import Worker
from kernels import pick


@dataclass(frozen=True)
class PoolStats:
    """Pages of one cache group: all, held by sessions now, cached (evictable), most ever held, evictions so far."""

    window: int | None
    pages: int
    held: int
    cached: int
    peak_held: int
    evicted: int


@dataclass(frozen=True)
class EngineStats:
    """What the engine has done and what it holds."""

    steps: int
    rows: int
    sessions: int
    memory_bytes: int
    pools: tuple[PoolStats, ...]


class Engine:
    """Loads one model and opens sessions on it.  Close it, or use it as a context manager."""

    def __init__(self, model_file: ModelFile, settings: EngineSettings | None = None) -> None:
        self.settings = settings = settings or EngineSettings()
        self.shape = model_file.shape
        self.name = model_file.name
        self.fingerprint = model_file.fingerprint
        self.context = min(settings.context or model_file.context_length, model_file.context_length)
        self.tokenizer = Tokenizer(model_file.vocabulary)
        self.template_source = model_file.chat_template
        self._template: ChatFragments | None = None
        groups = plan_groups(self.shape, settings, self.context)
        model = pick(settings.device).load(self.shape, model_file.weights, threads=settings.threads)
        self.store = KVStore(model.make_cache(groups, settings.kv_dtype), settings.window_slack)
        if self.store.cache.nbytes > settings.memory_bytes:
            raise EngineError(
                f"The back end took {self.store.cache.nbytes} bytes for pages, {settings.memory_bytes} are allowed."
            )
        self.scheduler = Scheduler(model, self.store, settings, self.context)
        if settings.validate:
            self.scheduler.on_step = lambda: check_store(self.store)
        self.worker = Worker(self.scheduler)
        self.closed = False

    @classmethod
    def load(cls, path: str | Path, settings: EngineSettings | None = None) -> Engine:
        """Read a GGUF file or a Hugging Face folder and make it ready.

        Raises `ModelFileError`, `UnsupportedModelError`, `OutOfPages`, or `kernels.contract.KernelError`.
        """
        return cls(read_model(path), settings)

    @property
    def template(self) -> ChatFragments:
        """The model's chat template as fragments to append; derived at first use."""
        if self._template is None:
            self._template = ChatFragments(self.tokenizer, self.template_source)
        return self._template

    # ---- sessions ---------------------------------------------------------------------------------------------

    def new_session(self, ids: Sequence[int] = (), *, priority: Priority = Priority.SPEAKING) -> Session:
        """An empty session, or one that begins with `ids` (computed now, or found in the cache)."""
        slot: Slot = self.worker.call(lambda: self.add_slot(self.store.new(), priority))
        session = Session(self, slot)
        if ids:
            try:
                session.append(ids)
            except BaseException:
                session.close()
                raise
        return session

    def load_session(self, path: str | Path, *, priority: Priority = Priority.SPEAKING) -> Session:
        """A session written by `Session.save`; `SavedSessionError` if it is damaged or belongs to another model."""
        from engine.saving import load_session

        return load_session(self, Path(path), priority)

    def add_slot(self, seq: Tokens, priority: Priority) -> Slot:
        """Worker only: register a sequence."""
        slot = Slot(seq, priority)
        self.scheduler.slots.append(slot)
        return slot

    def remove_slot(self, slot: Slot) -> None:
        """Worker only: the end of a session."""
        if not slot.closed:
            slot.closed = True
            self.store.drop(slot.seq)
            self.scheduler.slots.remove(slot)

    # ---- the whole --------------------------------------------------------------------------------------------

    @property
    def stats(self) -> EngineStats:
        """A snapshot, taken without waiting for the worker."""
        pools = tuple(
            PoolStats(spec.window, len(pool.pages), pool.held, pool.n_cached, pool.peak_held, pool.evicted)
            for spec, pool in zip(self.store.groups, self.store.pools, strict=True)
        )
        return EngineStats(
            self.scheduler.steps, self.scheduler.rows, len(self.scheduler.slots), self.store.cache.nbytes, pools
        )

    def check(self) -> None:
        """Verify all bookkeeping; raises `InvariantBroken` if there is a bug."""
        if self.closed:
            check_store(self.store)
        else:
            self.worker.call(lambda: check_store(self.store))

    def drop_cache(self) -> int:
        """Forget everything no session holds; returns the number of pages."""
        dropped: int = self.worker.call(lambda: sum(pool.drop_cached() for pool in self.store.pools))
        return dropped

    def close(self) -> None:
        """End all jobs and the worker; sessions are unusable afterwards."""
        self.closed = True
        self.worker.stop()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
