"""A class of an installed package as the implementation: every kind of check of it has a case that fails."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sitegen import accounting, loader, resolver, verifier
from sitegen.probe.package import installation

pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]
MODEL = "deepseek-v4"
SPEC = f"spec/{MODEL}"
WEIGHTS, STREAMS = f"{SPEC}/components/stream_weights.yml", f"{SPEC}/components/streams.yml"
ATTENTION, MOE = f"{SPEC}/components/attention.yml", f"{SPEC}/components/moe.yml"
WHOLE, MODEL_FILE = f"{SPEC}/components/model.yml", f"{SPEC}/model.yml"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / SPEC, root / SPEC)
    shutil.copy(ROOT / "mkdocs.yml", root / "mkdocs.yml")
    return root


@pytest.fixture
def project(pristine: Path) -> Iterator[Path]:
    """The module's copy, put right again after each test."""
    kept = {p: p.read_bytes() for p in (pristine / "spec").rglob("*") if p.is_file()}
    yield pristine
    for path, content in kept.items():
        path.write_bytes(content)


def edit(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text("utf-8")
    assert old in text, f"{old!r} does not occur in {file}"
    (root / file).write_text(text.replace(old, new, 1), "utf-8")


#: name -> file, old, new, level, component, code, part of expected or actual
MUTATIONS = {
    "a factor of a formula": (WEIGHTS, 'expr: "u[k] = 2*sigmoid(', 'expr: "u[k] = 1.99*sigmoid(', "cpu", "stream_weights_for_attention", "formula-mismatch", "from the implementation"),  # noqa: E501
    "a guard left out": (WEIGHTS, "sigmoid(s[1]*m[j] + b[j]) + eps_hc", "sigmoid(s[1]*m[j] + b[j])", "cpu", "stream_weights_for_attention", "formula-mismatch", ""),  # noqa: E501
    "the combination not transposed": (STREAMS, 'expr: "X\'[k,f] = u[k]*y[f] + sum(j: C[j,k]*X[j,f])"', 'expr: "X\'[k,f] = u[k]*y[f] + sum(j: C[k,j]*X[j,f])"', "cpu", "stream_write_attention", "formula-mismatch", ""),  # noqa: E501
    "a control that holds": (STREAMS, 'holds: "X\'[k,f] = u[k]*y[f] + sum(j: C[k,j]*X[j,f])"', 'holds: "X\'[k,f] = u[k]*y[f] + sum(j: C[j,k]*X[j,f])"', "cpu", "stream_write_attention", "control-holds", "at least"),  # noqa: E501
    "a point of a sweep": (STREAMS, 'of deviation 8", error: 1.7e-2', 'of deviation 8", error: 2.0e-6', "cpu", "stream_write_attention", "property-mismatch", "within a factor"),  # noqa: E501
    "the keys are another tensor than the queries": (ATTENTION, 'moves: ["eager_attention_forward#0.value"]', 'moves: ["eager_attention_forward#0.query"]', "cpu", "attention/sparse_attention", "property-mismatch", "a change"),  # noqa: E501
    "the key axis of a compressed layer": (ATTENTION, '{name: key, axes: [B, "1", "slot: T + T//rate", D], dtype: bfloat16, text: what', '{name: key, axes: [B, "1", "slot: T", D], dtype: bfloat16, text: what', "cpu", "attention/kv_concat", "shape-mismatch", ""),  # noqa: E501
    "slots of a decoding step": (ATTENTION, "min(T + 1, window) + (T + 1)//rate", "T + 1 + (T + 1)//rate", "cpu", "attention/sparse_attention", "property-mismatch", ""),  # noqa: E501
    "the sine of the rotation": (ATTENTION, "- q[head,pos,D-R+2*c]*sine[pos,c]", "+ q[head,pos,D-R+2*c]*sine[pos,c]", "cpu", "attention/query/rotation", "formula-mismatch", ""),  # noqa: E501
    "the table of experts": (MOE, 'holds: "I[c] = table[t + 1, c]"', 'holds: "I[c] = table[t + 2, c]"', "cpu", "moe/gate/token_table", "property-mismatch", ""),  # noqa: E501
    "a refusal that does not happen": (WHOLE, "trial: {config: {scoring_func: softmax}}", "trial: {config: {scoring_func: sigmoid}}", "cpu", "model", "control-holds", "without an exception"),  # noqa: E501
    "another exception": (WHOLE, "raises: KeyError, says: softmax", "raises: TypeError, says: softmax", "cpu", "model", "property-mismatch", "KeyError"),  # noqa: E501
    "the size of the default": (WHOLE, "parameters: 284325869015", "parameters: 284325869016", "cpu", "model", "count-mismatch", "284,325,869,015"),  # noqa: E501
    "a value that no module has": (WEIGHTS, "u: post, C: comb, h: collapsed}", "u: pre, C: comb, h: collapsed}", "cpu", "stream_weights_for_attention", "unknown-reference", ""),  # noqa: E501
    "a stored name": (WEIGHTS, "layers.{i}.hc_${stored}_fn", "layers.{i}.hc_${stored}_fm", "cpu", "stream_weights_for_attention/mix_projection", "checkpoint-mismatch", "nothing was read"),  # noqa: E501
    "the order of stored halves": (MOE, '["layers.{i}.ffn.experts.{e}.w1.weight", "layers.{i}.ffn.experts.{e}.w3.weight"]', '["layers.{i}.ffn.experts.{e}.w3.weight", "layers.{i}.ffn.experts.{e}.w1.weight"]', "cpu", "moe/routed_experts/w1", "checkpoint-mismatch", "other values"),  # noqa: E501
    "a configuration that is refused": (MODEL_FILE, "    o_groups: 7\n", "    o_groups: 5\n", "cpu", "head", "config-invalid", ""),  # noqa: E501
    "a field that does not exist": (MODEL_FILE, "names: [model.embed_tokens.weight], deviation", "names: [model.embed_token.weight], deviation", "cpu", "head", "config-invalid", "embed_token"),  # noqa: E501
    "the count of a row": (WEIGHTS, "count: n*d*M", "count: n*d*M + 1", "meta", "stream_weights_for_attention/mix_projection", "count-mismatch", "393,216"),  # noqa: E501
    "the class of a module": (WEIGHTS, "class: DeepseekV4HyperConnection", "class: DeepseekV4HyperHead", "meta", "stream_weights_for_attention", "unknown-reference", "DeepseekV4HyperConnection"),  # noqa: E501
    "the path of a module": (MOE, "module: {path: mlp.experts,", "module: {path: mlp.expert,", "meta", "moe/routed_experts", "unknown-reference", ""),  # noqa: E501
    "the shape of a buffer": (MOE, "tid2eid, axes: [V, K]", "tid2eid, axes: [K, V]", "meta", "moe/gate/token_table", "shape-mismatch", "129280"),  # noqa: E501
    "a parameter as a buffer": (MOE, "role: buffer, tensor: mlp.gate.tid2eid", "role: parameter, tensor: mlp.gate.tid2eid", "meta", "moe/gate/token_table", "count-mismatch", "a buffer here"),  # noqa: E501
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_statement_is_one_clear_finding(name: str, project: Path) -> None:
    """It names the component, the place in the spec, and both values."""
    file, old, new, level, component, code, shown = MUTATIONS[name]
    edit(project, file, old, new)
    report = verifier.verify(project, MODEL, levels=(level,), components=[component], force=True)
    found = [f for f in report.findings if f.code == code and f.component == component]
    assert report.exit_code == 1 and found, [(f.code, f.component, f.message, f.actual) for f in report.findings]
    assert found[0].where.file.startswith("spec/") and found[0].where.line > 0
    assert shown in " ".join(f"{f.message} {f.expected} {f.actual}" for f in found)
    if code != "unknown-reference":
        assert found[0].expected and found[0].actual


#: name -> old, new, part of the message, expected, actual
PINS = {
    "another version": ("version: 5.24.0", "version: 5.23.0", "another version", "5.23.0", "5.24.0"),
    "other bytes": (": 94ba7fd1", ": 94ba7fd2", "not the file that is pinned", "94ba7fd2", "94ba7fd1"),
    "a file that is not there": ("modeling_deepseek_v4.py: ", "modeling_deepseek_v5.py: ", "not the file", "", "no such file"),  # noqa: E501
}


@pytest.mark.parametrize("name", PINS)
def test_another_package_than_the_pinned_one_is_a_finding_and_nothing_is_run(name: str, project: Path) -> None:
    old, new, message, expected, actual = PINS[name]
    edit(project, MODEL_FILE, old, new)
    report = verifier.verify(project, MODEL, force=True)
    found = [f for f in report.findings if f.code == "package-mismatch"]
    assert report.exit_code == 1 and len(found) == 1, "once, although two levels needed it"
    assert message in found[0].message and expected in found[0].expected and actual in found[0].actual
    assert found[0].where.file == MODEL_FILE and found[0].where.line > 0 and found[0].hint
    assert not any(o.executed for o in report.outcomes)


def test_without_the_package_statements_are_not_run_and_say_why(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No fault: exit 0, and the reason names what to install."""

    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation.importlib.metadata, "distribution", missing)
    report = verifier.verify(project, MODEL, force=True)
    assert report.exit_code == 3 and not report.errors, "nothing at all could be executed here"
    reasons = {o.detail for o in report.outcomes if o.state == "not_run" and o.statement == "row:table"}
    assert reasons == {"the package 'transformers' is not installed: pip install 'transformers==5.24.0'"}
    assert not any(o.executed for o in report.outcomes)


def test_counts_are_those_of_the_issue() -> None:
    accounts = accounting.count(resolver.resolve(loader.load(ROOT, MODEL)))
    policies = accounts.model.sources.policies
    assert accounts.policy(policies["all"]) == 284_332_230_231
    assert accounts.policy(policies["active"]) == 13_799_622_231
    assert accounts.per_instance("stream_weights_for_attention") == [393_243]
    assert accounts.per_instance("final_collapse") == [65_541]
    assert accounts.per_instance("attention") == [106_956_352]
    layer = {place: sum(accounts.total(id, place) for id in ("attention", "compressor", "indexer")) for place in
             ("sliding", "sparse", "heavy")}  # fmt: skip
    assert layer == {"sliding": 2 * 106_956_352, "sparse": 20 * 126_098_624, "heavy": 20 * 111_216_704}


def test_configuration_is_written_out_in_full_and_read_as_written() -> None:
    """What the package would fill in by itself is another model."""
    config = json.loads((ROOT / SPEC / "config.json").read_text("utf-8"))
    assert len(config["layer_types"]) == len(config["mlp_layer_types"]) == config["num_hidden_layers"] == 43
    assert config["layer_types"].count("sliding_attention") == 2
    assert config["layer_types"].count("compressed_sparse_attention") == 21


def test_every_parameter_and_buffer_is_drawn() -> None:
    """A recipe that leaves a tensor as the package drew it, or names none, is refused."""
    from sitegen.probe.harness import harness
    from sitegen.probe.package.initial import fill

    sources = loader.load(ROOT, MODEL)
    made = harness(sources)
    config = {**sources.config, **sources.model.configurations[0].set}
    net = made.build(config, dtype="float32", seed=1)
    for name, tensor in net.state_dict().items():
        plain = tensor.double().flatten()
        assert len(set(plain.tolist())) == plain.numel() or plain.numel() > 1 and plain.std() > 0, f"{name} is constant"
        assert plain.abs().min() > 0 or "tid2eid" in name, f"{name} holds a zero"
    package = sources.model.implementation.package
    assert package is not None
    with pytest.raises(ValueError, match="no rule of initialise draws"):
        fill(net, package.initialise[:-1], config, 1)


def test_the_whole_model_is_verified_within_a_minute_in_one_process() -> None:
    """All checks of the model, imports included, on one thread."""
    import time

    start = time.process_time()
    report = verifier.verify(ROOT, MODEL, force=True)
    assert report.exit_code == 0, [f.text() for f in report.errors]
    assert time.process_time() - start < 60
    states = report.counts()
    assert states["failed"] == states["not_run"] == 0 and sum(o.executed for o in report.outcomes) > 1_000
