"""The systemd unit: written from one template a kind, and what to do with it then."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from assistant.daemon.config import config_path, load_config
from assistant.errors import CrosstalkError, ExitCode
from assistant.folders import cache_folder

NAME = "crosstalk.service"
SYSTEM_CONFIG = Path("/etc/crosstalk/daemon.yaml")

_COMMON = """\
# Made by `crosstalk daemon install`.
[Unit]
Description=Crosstalk voice assistant
{after}
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={command} daemon{config}
ExecReload=/bin/kill -HUP $MAINPID
WatchdogSec=60
TimeoutStartSec=300
TimeoutStopSec=60
Restart=on-failure
RestartSec=2
# A wrong config, a busy socket or a missing model is not mended by trying again.
RestartPreventExitStatus=2 4 7
{own}
StateDirectory=crosstalk
StateDirectoryMode=0700
RuntimeDirectory=crosstalk
RuntimeDirectoryMode=0700
UMask=0077
MemoryMax=2G
TasksMax=128

NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome={home}
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictNamespaces=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
# No MemoryDenyWriteExecute: the engine's loops are compiled when it starts.

[Install]
WantedBy={wanted}
"""


class InstallError(CrosstalkError):
    """The unit cannot be written."""

    exit_code = ExitCode.OUTPUT


class UsageError(CrosstalkError):
    """It was not said which unit is meant."""

    exit_code = ExitCode.USAGE


def unit_text(*, system: bool, command: str, config: Path | None, cache: Path) -> str:
    """The unit. `command`: the console script; `cache`: where a user's models lie."""
    if system:
        own = (
            "DynamicUser=yes\nSupplementaryGroups=audio\nDevicePolicy=closed\nDeviceAllow=char-alsa rw\n"
            "CapabilityBoundingSet=\nNice=-5\nProtectProc=invisible\n"
            "CacheDirectory=crosstalk\nEnvironment=CROSSTALK_CACHE=%C/crosstalk CROSSTALK_CONFIG=/etc/crosstalk"
        )
        after, wanted, home = "After=sound.target network.target", "multi-user.target", "yes"
    else:
        # The sandbox of a user's service needs a user namespace of its own, made before namespaces are forbidden.
        own = f'PrivateUsers=yes\nReadWritePaths=-"{cache}"'
        after = "After=sound.target pulseaudio.service pipewire-pulse.service"
        wanted, home = "default.target", "read-only"
    return _COMMON.format(
        after=after,
        command=_quoted(command),
        config=f" --config {_quoted(str(config.absolute()))}" if config is not None else "",
        own=own,
        home=home,
        wanted=wanted,
    )


def _quoted(word: str) -> str:
    """As systemd reads a word of a command line."""
    word = word.replace("%", "%%").replace("$", "$$")
    plain = all(letter.isalnum() or letter in "/._-+:@%$" for letter in word)
    return word if plain else '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unit_path(*, system: bool) -> Path:
    """Where systemd looks for it."""
    if system:
        return Path("/etc/systemd/system") / NAME
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "systemd" / "user" / NAME


def install_unit(*, user: bool, system: bool, show: bool, config: Path | None) -> None:
    """Write the unit, or print it. UsageError, SettingsError for a broken config, InstallError."""
    if user == system:
        raise UsageError("say which service is meant: --user or --system.")
    if config is None and system and SYSTEM_CONFIG.exists():
        config = SYSTEM_CONFIG
    load_config(config)
    text = unit_text(system=system, command=_command(), config=config, cache=cache_folder())
    if show:
        print(text, end="")
        return
    path = unit_path(system=system)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
    except OSError as error:
        hint = "run it as root, or use --user." if system else "is the folder yours?"
        raise InstallError(f"{path} cannot be written ({error.strerror}); {hint}") from error
    control = "systemctl" if system else "systemctl --user"
    print(f"Wrote {path}. Now:\n\n    {control} daemon-reload\n    {control} enable --now {NAME}")
    if system:
        print("\nIts models, once:  sudo CROSSTALK_CACHE=/var/cache/crosstalk crosstalk models pull")
        print(f"Its config:        {SYSTEM_CONFIG}")
    else:
        print("    loginctl enable-linger        # to have it run before you log in")
        print(f"\nIts config: {config_path(config)}")


def _command() -> str:
    """The console script beside this interpreter, else the one on the path."""
    beside = Path(sys.executable).with_name("crosstalk")
    return str(beside) if beside.exists() else shutil.which("crosstalk") or "crosstalk"
