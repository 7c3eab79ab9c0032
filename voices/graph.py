"""Changes to a Piper voice's graph, made in memory when it is loaded.

* The samples per phoneme, which the model computes and keeps to itself, become an output: the source of word
  timing.
* The noise that varies melody and length comes out of a fixed table, entered at an offset given with each call,
  instead of the runtime's hidden generator. The same text with the same seed then sounds the same, sample for
  sample, whatever was spoken before and on which thread: replays and tests can be repeated exactly.
* The graph is cut in two where its decoder begins. The decoder turns frames (256 samples) into sound by
  convolutions that reach 12 frames to either side, so it can be run on a few frames at a time with the same
  result; it takes three quarters of the time, and the first sound of a long sentence need not wait for it all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from voices.errors import VoiceError

if TYPE_CHECKING:
    from onnx import ModelProto

NOISE_OFFSET = "noise_offset"
NOISE_VALUES = 1 << 20
_DECODER = "/dec/"  # how the exporter names the decoder's nodes


@dataclass(frozen=True)
class Prepared:
    """`front`: phonemes to frames and lengths; `back`: frames to sound. Without `back`, `front` does it all.

    `seeded`: the model takes a noise offset. `lengths` is the output with the frames of each phoneme, `frames`
    the tensors that `back` takes, the frames themselves first.
    """

    front: bytes
    back: bytes | None
    lengths: str
    frames: tuple[str, ...]
    seeded: bool


def prepare(path: Path) -> Prepared:
    """Read and change a voice model; raises VoiceError for a file that is none."""
    import onnx

    try:
        model = onnx.load(str(path))
    except Exception as error:  # the parser raises several kinds, none of them public
        raise VoiceError(f"{path} is not a voice model; pull the voice again") from error
    lengths = _expose_lengths(model)
    seeded = _fix_noise(model)
    sound = next(o.name for o in model.graph.output if o.name != lengths)
    frames = _decoder_inputs(model, sound)
    if not frames:
        return Prepared(model.SerializeToString(), None, lengths, (sound,), seeded)
    from onnx.utils import Extractor

    extractor = Extractor(model)
    inputs = [i.name for i in model.graph.input]
    front = extractor.extract_model(inputs, [*frames, lengths])
    back = extractor.extract_model(list(frames), [sound])
    return Prepared(front.SerializeToString(), back.SerializeToString(), lengths, frames, seeded)


def _expose_lengths(model: ModelProto) -> str:
    from piper.patch_voice_with_alignment import add_alignment_output

    if len(model.graph.output) > 1:
        return model.graph.output[1].name  # a voice that was exported with alignments
    try:
        return add_alignment_output(model)
    except ValueError as error:
        raise VoiceError("this voice does not tell the length of its phonemes; use another one") from error


def _decoder_inputs(model: ModelProto, sound: str) -> tuple[str, ...]:
    """What flows into the decoder, the frames first; empty where it cannot be told apart from the rest."""
    constants = {i.name for i in model.graph.initializer}
    inside = {o for n in model.graph.node if n.name.startswith(_DECODER) for o in n.output}
    producers = {o: n for n in model.graph.node for o in n.output}
    flowing: dict[str, None] = {}
    for node in model.graph.node:
        if node.name.startswith(_DECODER):
            for name in node.input:
                if name and name not in constants and name not in inside:
                    if producers.get(name) is not None and producers[name].op_type == "Constant":
                        continue
                    flowing.setdefault(name)
    first = next((n for n in model.graph.node if n.name.startswith(f"{_DECODER}conv_pre/")), None)
    if first is None or first.input[0] not in flowing or any(producers.get(n) is None for n in flowing):
        return ()
    return (first.input[0], *(n for n in flowing if n != first.input[0]))


def _fix_noise(model: ModelProto) -> bool:
    """Replace each random node by a slice of a table of normal deviates, wrapped around at its end."""
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    nodes = list(graph.node)
    if not any(n.op_type == "RandomNormalLike" for n in nodes):
        return False
    constants: dict[str, np.ndarray] = {
        "noise/table": np.random.default_rng(20260).standard_normal(NOISE_VALUES, dtype=np.float32),
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
