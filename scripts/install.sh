#!/usr/bin/env bash
# Makes the virtual environment if there is none and installs the project into it, editable.
# usage: scripts/install.sh VENV [EXTRAS]      e.g. scripts/install.sh .venv test
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
extras=${2:+[$2]}
if ! "$venv/bin/python" -c 'import pip' >/dev/null 2>&1; then
    python=$(scripts/find_python.sh)
    echo "== making $venv with $("$python" --version)"
    "$python" -m venv "$venv"
fi
echo "== installing crosstalk-assistant$extras into $venv (the first time takes a few minutes)"
# TORCH_INDEX: a package index with CPU-only builds of torch spares the tests a download of gigabytes on Linux.
[ -z "${TORCH_INDEX:-}" ] || export PIP_EXTRA_INDEX_URL=$TORCH_INDEX
"$venv/bin/python" -m pip install --disable-pip-version-check --no-input \
    --constraint constraints.txt --editable ".$extras"
