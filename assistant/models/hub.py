"""Fetching a file from a Hugging Face hub through its own client."""

from __future__ import annotations

import errno
import os
import socket
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

from assistant.models.catalogue import HubPart
from assistant.models.errors import FetchError, NoRoom

_PORTS = {"http": 80, "https": 443}


def download_from_hub(part: HubPart, folder: Path, arrived: Callable[[int], None]) -> Path:
    """Put the file under `folder` and return its path; raises FetchError or NoRoom."""
    # Read by the client when it is imported: a dead network should be reported in seconds, not minutes.
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", "10")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.constants import ENDPOINT
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.utils import disable_progress_bars
    from huggingface_hub.utils.logging import set_verbosity_error

    disable_progress_bars()
    set_verbosity_error()
    if not _answers(ENDPOINT):
        raise FetchError(f"no network: the hub did not answer for {part}; try again when online.")
    try:
        path = Path(hf_hub_download(part.repo, part.file, revision=part.revision, local_dir=folder))
    except GatedRepoError as error:
        raise FetchError(f"{part} asks for consent: accept its terms on the hub and set HF_TOKEN.") from error
    except LocalEntryNotFoundError as error:  # the client's name for: not here, and the hub did not answer
        raise FetchError(f"no network: the hub did not answer for {part}; try again when online.") from error
    except (RepositoryNotFoundError, RevisionNotFoundError, EntryNotFoundError) as error:
        raise FetchError(f"the hub has no {part}; check owner, repository and file name.") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise NoRoom(f"the disk is full (or a limit reached) while fetching {part}; free some space.") from error
        raise FetchError(f"could not fetch {part}: {' '.join(str(error).split())}.") from error
    except Exception as error:  # the HTTP client underneath has changed before, and its errors with it
        raise FetchError(f"could not fetch {part}: {' '.join(str(error).split())[:200]}.") from error
    arrived(path.stat().st_size)
    return path


def _answers(endpoint: str) -> bool:
    """Whether anybody listens there: the client itself tries for half a minute before it gives up."""
    url = urllib.parse.urlsplit(endpoint)
    if urllib.request.getproxies().get(url.scheme):
        return True  # only the proxy can tell
    try:
        with socket.create_connection((url.hostname or "", url.port or _PORTS.get(url.scheme, 443)), timeout=10):
            return True
    except OSError:
        return False
