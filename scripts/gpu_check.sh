#!/usr/bin/env bash
# On a machine with a CUDA card: is every GPU kernel right, and how near the memory's speed is it?  About 5 minutes.
# Needs only torch, triton, numpy and the standard library beside this project; downloads nothing.
#
#   PYTHON=/path/to/python bash scripts/gpu_check.sh [--json FILE]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
[ -x .venv/bin/python ] && [ -z "${PYTHON:-}" ] && python=.venv/bin/python
unset TRITON_INTERPRET

"$python" - <<'CHECK'
import sys
import torch
import triton

if not torch.cuda.is_available():
    sys.exit("There is no CUDA card that torch can use here.")
print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}")
CHECK

echo "== correctness"
status=0
timeout "${CHECK_SECONDS:-150}" "$python" -m tests.kernels.gpu.on_card || status=$?
echo "== speed"
timeout "${BENCH_SECONDS:-150}" "$python" -m assistant.bench.gpu_bench "$@" || status=$?
exit "$status"
