"""The lm-eval adapter against the harness's own Hugging Face back end, on a local task file."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("lm_eval", reason="extra `eval`")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from engine import Engine, EngineSettings  # noqa: E402

QUESTIONS = [
    ("What do bees make?", ["honey", "milk", "bread", "glass"], 0),
    ("How many legs has a spider?", ["two", "four", "eight", "ten"], 2),
    ("Which is the largest ocean?", ["the Pacific", "the Arctic", "a pond", "the Atlantic"], 0),
    ("Where do penguins live? ", ["in the desert", "in Antarctica", "on the moon", "in trees"], 1),
]
HEAD = "The following are multiple choice questions (with answers) about the world. Answer each of them briefly.\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small Llama with random weights and a tokenizer trained on the questions."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder = tmp_path_factory.mktemp("model")
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    text = [HEAD] + [question + " " + " ".join(answers) for question, answers, _ in QUESTIONS]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<eos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    core.train_from_iterator(text * 20, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        eos_token_id=0,
        bos_token_id=None,
    )
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6 if parameter.dim() > 1 else 1)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def both(folder):
    from lm_eval.models.huggingface import HFLM

    from engine.lm_eval_adapter import EngineLM

    theirs = HFLM(pretrained=str(folder), device="cpu", dtype="float32", batch_size=1)
    with Engine.load(folder, EngineSettings(device="reference", kv_dtype="float32", memory_bytes=8 << 20)) as engine:
        yield EngineLM(engine), theirs


def instances(kind: str, arguments: list[tuple]):
    from lm_eval.api.instance import Instance

    return [Instance(request_type=kind, doc={}, arguments=a, idx=i) for i, a in enumerate(arguments)]


def test_a_local_task_gives_the_same_numbers_with_a_fraction_of_the_tokens(both, tmp_path):
    import lm_eval
    from lm_eval.tasks import TaskManager

    data = tmp_path / "world.jsonl"
    rows = [{"question": HEAD + q, "choices": c, "answer": a} for q, c, a in QUESTIONS]
    data.write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "world.yaml").write_text(
        f"""task: world
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}\\nAnswer:"
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
"""
    )
    ours, theirs = both
    ours.counts.forwarded = ours.counts.alone = 0
    logged = []
    for model in (ours, theirs):
        tasks = TaskManager(include_path=str(tmp_path), include_defaults=False)
        result = lm_eval.simple_evaluate(model=model, tasks=["world"], task_manager=tasks, bootstrap_iters=0)
        logged.append([sample["filtered_resps"] for sample in result["samples"]["world"]])
    for mine, other in zip(*logged, strict=True):
        for (a, greedy_a), (b, greedy_b) in zip(mine, other, strict=True):
            assert abs(a - b) < 1e-3 and greedy_a == greedy_b
    assert ours.counts.forwarded < 0.4 * ours.counts.alone


def test_both_encoding_rules_and_the_empty_context(both):
    ours, theirs = both
    arguments = [("Answer: ", "honey"), ("Answer:", " honey"), ("", "honey and milk"), ("a  ", " b")]
    for a, b in zip(
        ours.loglikelihood(instances("loglikelihood", arguments), disable_tqdm=True),
        theirs.loglikelihood(instances("loglikelihood", arguments), disable_tqdm=True),
        strict=True,
    ):
        assert abs(a[0] - b[0]) < 1e-3 and a[1] == b[1]


def test_inputs_longer_than_the_context_lose_their_beginning(both):
    ours, theirs = both
    arguments = [((HEAD + QUESTIONS[0][0]) * 12, " honey"), ((HEAD + QUESTIONS[1][0]) * 12, " eight legs")]
    for a, b in zip(
        ours.loglikelihood(instances("loglikelihood", arguments), disable_tqdm=True),
        theirs.loglikelihood(instances("loglikelihood", arguments), disable_tqdm=True),
        strict=True,
    ):
        assert abs(a[0] - b[0]) < 1e-3


def test_rolling_and_generation(both):
    ours, theirs = both
    texts = [(HEAD,), (HEAD * 12,), ("honey",)]
    mine = ours.loglikelihood_rolling(instances("loglikelihood_rolling", texts), disable_tqdm=True)
    other = theirs.loglikelihood_rolling(instances("loglikelihood_rolling", texts), disable_tqdm=True)
    assert all(abs(a - b) < 1e-3 * abs(b) for a, b in zip(mine, other, strict=True))
    asked = [(HEAD + q, {"until": ["e"], "max_gen_toks": 12}) for q, _, _ in QUESTIONS]
    mine = ours.generate_until(instances("generate_until", asked), disable_tqdm=True)
    other = theirs.generate_until(instances("generate_until", asked), disable_tqdm=True)
    assert mine == other
