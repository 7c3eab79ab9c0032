"""Two changes to a Piper voice's graph, made in memory when it is loaded.

* The samples per phoneme, which the model computes and keeps to itself, become an output: the source of word
  timing.
* The noise that varies melody and length comes out of a fixed table, entered at an offset given with each call,
  instead of the runtime's hidden generator. The same text with the same seed then sounds the same, sample for
  sample, whatever was spoken before and on which thread: replays and tests can be repeated exactly.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from voices.errors import VoiceError

if TYPE_CHECKING:
    from onnx import ModelProto

NOISE_OFFSET = "noise_offset"
NOISE_VALUES = 1 << 20


def prepare(path: Path) -> tuple[bytes, bool]:
    """The changed model, serialised for the runtime, and whether it takes a noise offset."""
    import onnx

    try:
        model = onnx.load(str(path))
    except Exception as error:  # the parser raises several kinds, none of them public
        raise VoiceError(f"{path} is not a voice model; pull the voice again") from error
    _expose_lengths(model)
    seeded = _fix_noise(model)
    return model.SerializeToString(), seeded


def _expose_lengths(model: ModelProto) -> None:
    from piper.patch_voice_with_alignment import add_alignment_output

    if len(model.graph.output) > 1:
        return  # a voice that was exported with alignments
    try:
        add_alignment_output(model)
    except ValueError as error:
        raise VoiceError("this voice does not tell the length of its phonemes; use another one") from error


def _fix_noise(model: ModelProto) -> bool:
    """Replace each random node by a slice of a table of normal deviates, wrapped around at its end."""
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    nodes = list(graph.node)
    if not any(n.op_type == "RandomNormalLike" for n in nodes):
        return False
    table = np.random.default_rng(20260).standard_normal(NOISE_VALUES, dtype=np.float32)
    constants: dict[str, np.ndarray] = {
        "noise/table": table,
        "noise/zero": np.array(0, np.int64),
        "noise/one": np.array(1, np.int64),
        "noise/size": np.array(NOISE_VALUES, np.int64),
    }
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    graph.input.append(helper.make_tensor_value_info(NOISE_OFFSET, TensorProto.INT64, []))
    changed = []
    for index, node in enumerate(nodes):
        if node.op_type != "RandomNormalLike":
            changed.append(node)
            continue
        at = f"noise/{index}"
        shift = numpy_helper.from_array(np.array(index * 7919, np.int64), f"{at}/shift")
        graph.initializer.append(shift)
        changed += [
            helper.make_node("Shape", [node.input[0]], [f"{at}/shape"]),
            helper.make_node("ReduceProd", [f"{at}/shape"], [f"{at}/count"], keepdims=0),
            helper.make_node("Range", ["noise/zero", f"{at}/count", "noise/one"], [f"{at}/range"]),
            helper.make_node("Add", [NOISE_OFFSET, f"{at}/shift"], [f"{at}/from"]),
            helper.make_node("Add", [f"{at}/range", f"{at}/from"], [f"{at}/moved"]),
            helper.make_node("Mod", [f"{at}/moved", "noise/size"], [f"{at}/index"]),
            helper.make_node("Gather", ["noise/table", f"{at}/index"], [f"{at}/flat"]),
            helper.make_node("Reshape", [f"{at}/flat", f"{at}/shape"], list(node.output)),
        ]
    del graph.node[:]
    graph.node.extend(changed)
    return True
