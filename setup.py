"""What pyproject.toml cannot say: `configs/` at the top of the project is installed as `assistant/configs`.

An editable installation leaves that out: configs are then found beside the rooms, and with every package under one
root setuptools writes a plain path entry, so that a new room or folder needs no new installation.
"""

import sys
from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOMS = ("assistant", "engine", "kernels", "voices")
HERE = Path(__file__).parent


def rooms() -> list[str]:
    found = find_namespace_packages(str(HERE), include=[pattern for r in ROOMS for pattern in (r, f"{r}.*")])
    return [package for package in found if "__pycache__" not in package]


def configs() -> list[str]:
    folders = [HERE / "configs", *(HERE / "configs").rglob("*")]
    return [".".join(("assistant", *f.relative_to(HERE).parts)) for f in sorted(folders) if f.is_dir()]


if "editable_wheel" in sys.argv:
    setup(packages=rooms(), package_dir={"": "."})
else:
    setup(packages=[*rooms(), *configs()], package_dir={"": ".", "assistant.configs": "configs"})
