#!/usr/bin/env bash
# Writes constraints.txt from what is installed in the virtual environment (after an upgrade that passed the tests).
set -euo pipefail
cd "$(dirname "$0")/.."
{
    echo "# Exact versions the tests passed with; made by scripts/pin.sh. Used by \`make setup\`."
    # A local label (+cpu, +cu130) names a build of the same release: any of them will do.
    # triton is left to torch, which wants exactly one version of it.
    .venv/bin/python -m pip freeze --exclude-editable --all | sed -E 's/\+[a-z0-9.]+$//' |
        grep -E '^[A-Za-z0-9_.-]+==' | grep -v -E '^(setuptools|pip|triton)=='
} >constraints.txt
