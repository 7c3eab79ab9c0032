"""Importing the room is cheap: no model library, no phonemiser, no thread."""

import subprocess
import sys

CHECK = """
import sys, threading
import voices, voices.backchannels, voices.effects
heavy = {"piper", "onnxruntime", "onnx", "phonenumbers", "pedalboard", "torch", "engine"} & set(sys.modules)
assert not heavy, heavy
assert threading.active_count() == 1
"""


def test_import_loads_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", CHECK], check=True)
