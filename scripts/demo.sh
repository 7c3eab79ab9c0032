#!/usr/bin/env bash
# Plays the recorded conversation into the assistant at real pace, and leaves what came of it in demo/.
set -euo pipefail
cd "$(dirname "$0")/.."
crosstalk=$1
echo "== checking each part (the first time, the kernels are compiled: half a minute)"
"$crosstalk" doctor
echo "== the conversation"
"$crosstalk" replay demo/conversation.flac --clock wall \
    --out demo/out.wav --timeline demo/timeline.json --html demo/timeline.html
echo "== left: demo/out.wav (you left, assistant right)  demo/timeline.json  demo/timeline.html"
