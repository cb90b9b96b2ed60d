"""The gate is sharp: whatever is changed in code or spec, verify says so, with place and both values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from project_copy import MODEL, ROOT, SPEC, Copy

from sitegen import verifier

WEIGHTS = f"{SPEC}/components/stream_weights.yml"
STREAMS = "reference_impl/ops/streams.py"
BLOCK = "reference_impl/block.py"

#: name -> file, old, new, codes of which one must be reported, a component that must be named
CODE_MUTATIONS = {
    "another number of streams": (
        BLOCK,
        "args.hc_mult, args.hc_sinkhorn_iters",
        "args.hc_mult + 1, args.hc_sinkhorn_iters",
        {"config-invalid", "shape-mismatch", "count-mismatch", "tensor-unassigned"},
        "stream_expansion",
    ),
    "one Sinkhorn round more": (
        STREAMS,
        "for _ in range(iters - 1)",
        "for _ in range(iters)",
        {"formula-mismatch"},
        "stream_weights_for_attention/stream_combination",
    ),
    "one Sinkhorn round less": (
        STREAMS,
        "for _ in range(iters - 1)",
        "for _ in range(iters - 2)",
        {"formula-mismatch"},
        "stream_weights_for_feed_forward/stream_combination",
    ),
    "norm_eps and hc_eps swapped": (
        BLOCK,
        "args.hc_mult, args.hc_sinkhorn_iters, args.hc_eps, args.norm_eps",
        "args.hc_mult, args.hc_sinkhorn_iters, args.norm_eps, args.hc_eps",
        {"formula-mismatch"},
        "stream_weights_for_attention/reading_weights",
    ),
    "combination transposed": (
        STREAMS,
        '"...jk,...jd->...kd"',
        '"...kj,...jd->...kd"',
        {"formula-mismatch"},
        "stream_write_attention",
    ),
    "epsilon in the softmax divisor": (
        STREAMS,
        "comb = torch.softmax(logits, dim=-1) + eps",
        "comb = torch.softmax(logits, dim=-1) / (1 + eps)",
        {"formula-mismatch"},
        "stream_weights_for_attention/stream_combination",
    ),
    "a mean square that is a little off": (
        STREAMS,
        "x.square().mean(-1, keepdim=True) + eps)",
        "widen(streams).square().mean(-1).mean(-1, keepdim=True) * 1.0001 + eps)",
        {"formula-mismatch"},
        "stream_weights_for_attention/mix_projection",
    ),
    "no shift: attention's own weights read the next input at once": (
        BLOCK,
        "x = self.attn_norm(self.ops.hc_read(streams, reading))",
        "x = self.attn_norm(self.ops.hc_read(streams, attn.reading))",
        {"property-mismatch"},
        "stream_read_attention",
    ),
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy.make(tmp_path_factory.mktemp("project"))


@pytest.fixture
def copy(pristine: Copy) -> Iterator[Copy]:
    """The module's copy, put right again after each test."""
    kept = {p: p.read_bytes() for p in pristine.root.rglob("*") if p.is_file() and ".sitegen" not in p.parts}
    yield pristine
    for path, content in kept.items():
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


@pytest.mark.parametrize("name", CODE_MUTATIONS)
def test_a_change_of_the_code_is_found_in_the_run_itself(name: str, copy: Copy) -> None:
    """Not only by its pin: the run gives other values, and the finding names component, place and both."""
    file, old, new, codes, component = CODE_MUTATIONS[name]
    copy.edit(file, old, new)
    only = ("--component", component)
    code, report = copy.run("verify", "--level", "cpu", "--force", "--format", "json", *only)
    assert code == 1
    found = [f for f in report["findings"] if f["code"] in codes and f["severity"] == "error"]
    assert found, [f["code"] for f in report["findings"]]
    if component:
        found = [f for f in found if f["component"] == component]
        assert found, [(f["code"], f["component"]) for f in report["findings"]]
        assert found[0]["file"].startswith("spec/") and found[0]["line"] > 0
        assert found[0]["expected"] and found[0]["actual"]
    pins = [f for f in report["findings"] if f["code"].startswith("pin-")]
    assert pins, "every edit of pinned code asks to be read again"


#: name -> file, old, new, code, part of expected or actual
SPEC_MUTATIONS = {
    "a wrong count": (WEIGHTS, "count: n*d*M", "count: n*d*M + 1", "count-mismatch", "491,521"),
    "a wrong shape": (WEIGHTS, "axes: [M, n*d], count", "axes: [M, d], count", "count-mismatch", "122,880"),
    "another axis order of a row": (WEIGHTS, "axes: [M, n*d], count", "axes: [n*d, M], count", "shape-mismatch", "20480"),
    "an element without owner": (WEIGHTS, 'slice: "[2*n:M]"', 'slice: "[2*n:M-1]"', "tensor-unassigned", "24"),
    "an element with two owners": (WEIGHTS, 'slice: "[0:n]"', 'slice: "[0:n+1]"', "tensor-assigned-twice", "4:8"),
    "a power written with ^": (WEIGHTS, "count: n*d*M", "count: n^2*d*M", "expression-invalid", "n^2"),
    "an unknown symbol": (WEIGHTS, "count: n*d*M", "count: n*d*N", "unknown-symbol", ""),
    "a fraction": (WEIGHTS, "count: n*d*M", "count: n*d*M/1", "expression-invalid", ""),
    "an unknown reference": (WEIGHTS, 'by: ["out:m", "step:mixes"]', 'by: ["out:m", "step:mixe"]', "unknown-reference", ""),
    "an evidence entry that nothing cites": (f"{SPEC}/evidence.yml", "evidence:\n", "evidence:\n  idle: {kind: direct, claim: Idle., source: report}\n", "evidence-unused", ""),  # noqa: E501
    "a source at a branch": (f"{SPEC}/sources.yml", "revision: 2cba9e42aa026125f3ed06c6d98c1db82f7ca027", "revision: main", "schema-invalid", "main"),  # noqa: E501
    "a range past the end": (WEIGHTS, "lines: [976, 978]", "lines: [1300, 1310]", "schema-invalid", "1310"),
    "a reversed range": (WEIGHTS, "lines: [976, 978]", "lines: [978, 976]", "schema-invalid", "978"),
    "a range from zero": (WEIGHTS, "lines: [976, 978]", "lines: [0, 3]", "schema-invalid", "0"),
    "one line number": (WEIGHTS, "lines: [976, 978]", "lines: [976]", "schema-invalid", "976"),
    "a stated constant that the configuration does not have": (WEIGHTS, 'eps_norm: "1e-20"}', 'eps_norm: "1e-6"}', "config-invalid", "1e-20"),  # noqa: E501
    "a control character from TeX in double quotes": (f"{SPEC}/symbols.yml", r"tex: '\epsilon'", r'tex: "\alpha"', "unsafe-text", ""),  # noqa: E501
    "an unknown TeX command": (f"{SPEC}/symbols.yml", r"tex: '\epsilon'", r"tex: '\epsilom'", "tex-invalid", ""),
    "a repeated key": (WEIGHTS, "title: Mix projection for ${sublayer}\n", "title: Mix projection\n  title: Mix\n", "yaml-invalid", ""),
    "a path outside": (WEIGHTS, "path: reference_impl/block.py", "path: ../reference_impl/block.py", "path-outside", ""),
    "a pin to a symbol that is gone": (WEIGHTS, "symbol: Block.stream_weights,", "symbol: Block.stream_weight,", "pin-gone", ""),  # noqa: E501
    "an unquoted comment sign": (WEIGHTS, "title: Mix projection for ${sublayer}\n", "title: Mix #projection\n", "yaml-invalid", ""),
    "an unknown field": (WEIGHTS, "kind: learned\n", "kinds: learned\n", "schema-invalid", ""),
}


@pytest.mark.parametrize("name", SPEC_MUTATIONS)
def test_a_fault_of_the_spec_is_one_clear_finding(name: str, copy: Copy) -> None:
    """check exits 1 and names file, line and column; nothing is written."""
    file, old, new, code, shown = SPEC_MUTATIONS[name]
    before = {p: p.read_bytes() for p in (copy.root / SPEC).rglob("*.json")}
    copy.edit(file, old, new)
    report = verifier.check(copy.root, MODEL)
    assert report.exit_code == 1
    found = [f for f in report.findings if f.code == code]
    assert found, [(f.code, f.message) for f in report.findings]
    assert found[0].where.file.startswith("spec/") and found[0].where.line > 0 and found[0].where.column > 0
    everything = " ".join(f"{f.expected} {f.actual} {f.message}" for f in found)
    assert shown in everything
    assert len(found[0].text().splitlines()) <= 3
    assert before == {p: p.read_bytes() for p in (copy.root / SPEC).rglob("*.json")}


#: name -> file, old, new, code (these need a run)
RUN_MUTATIONS = {
    "another constant in a formula": (WEIGHTS, 'expr: "u[k] = 2*sigmoid(', 'expr: "u[k] = 1.99*sigmoid(', "formula-mismatch", ""),  # noqa: E501
    "an epsilon left out": (WEIGHTS, "sum(k: exp(Z[j,k])) + eps_hc", "sum(k: exp(Z[j,k]))", "formula-mismatch", ""),  # noqa: E501
    "two axes of a port swapped": (WEIGHTS, '{name: X, axes: [B, T, n, d], dtype: bfloat16, text: the streams, component', '{name: X, axes: [B, T, d, n], dtype: bfloat16, text: the streams, component', "shape-mismatch", "/mix_projection"),  # noqa: E501
    "another number type": (WEIGHTS, "{name: m, axes: [B, T, M], dtype: float32, text: mix numbers}", "{name: m, axes: [B, T, M], dtype: bfloat16, text: mix numbers}", "dtype-mismatch", "/mix_projection"),  # noqa: E501
    "a tolerance ten times too wide": (WEIGHTS, "value: 2.0e-6", "value: 2.0e-4", "tolerance-loose", "/stream_combination"),  # noqa: E501
    "a tolerance too narrow": (WEIGHTS, "value: 2.0e-6", "value: 2.0e-8", "property-mismatch", "/stream_combination"),
    "a control that holds": (WEIGHTS, 'holds: "u[k] = 2*sigmoid(s[2]*m[n + k] + b[n + k]) + eps_hc"', 'holds: "u[k] = 2*sigmoid(s[2]*m[n + k] + b[n + k])"', "control-holds", "/writing_weights"),  # noqa: E501
    "a mutant that no regime tells apart": (WEIGHTS, 'rms_norm#0.weight"}, vary: [X]', 'rms_norm#0.weight"}', "formula-not-distinguished", "/mix_projection"),  # noqa: E501
    "the read of another sublayer": (WEIGHTS, 'moves: ["${next_layer}hc_read#${other}.result"]', 'moves: ["${next_layer}hc_read#${call}.result"]', "property-mismatch", ""),  # noqa: E501
    "a value path that no module has": (WEIGHTS, "s: scale, b: base, u: writing", "s: scales, b: base, u: writing", "unknown-reference", "/writing_weights"),  # noqa: E501
}


@pytest.mark.parametrize("name", RUN_MUTATIONS)
def test_a_wrong_statement_is_found_by_the_run(name: str, copy: Copy) -> None:
    """verify exits 1 and names the component and both values."""
    file, old, new, code, part = RUN_MUTATIONS[name]
    copy.edit(file, old, new)
    component = f"stream_weights_for_attention{part}"
    report = verifier.verify(copy.root, MODEL, levels=("cpu",), components=[component], force=True)
    assert report.exit_code == 1
    found = [f for f in report.findings if f.code == code]
    assert found, [(f.code, f.message) for f in report.findings]
    assert found[0].component == component
    if code != "unknown-reference":
        assert found[0].expected and found[0].actual


def test_the_project_itself_holds() -> None:
    """The same checks on the unchanged project find nothing."""
    report = verifier.check(ROOT, MODEL)
    assert report.exit_code == 0, [f.text() for f in report.errors]


def test_exit_code_3_when_a_required_level_cannot_run(copy: Copy) -> None:
    """No GPU here: asked for by --require it is 3; not asked for it is no fault."""
    code, report = copy.run("verify", "--level", "static", "--require", "gpu", "--format", "json")
    assert code == 3
    assert all(f["severity"] != "error" for f in report["findings"])


def test_counts_are_those_of_the_issue() -> None:
    """491,547 per instance; 17 per combination, 85 in one group's reusing layers, 680 over the backbone."""
    from sitegen import accounting, loader, resolver

    accounts = accounting.count(resolver.resolve(loader.load(ROOT, MODEL)))
    feed_forward, combination = "stream_weights_for_feed_forward", "stream_weights_for_attention/stream_combination"
    assert accounts.per_instance(feed_forward) == [491_520 + 5 + 5 + 17] == [491_547]
    assert accounts.per_instance(combination) == [17]
    assert accounts.total(combination, "ratio-2/reusing") == 17 * 5 * 3 == 255
    assert accounts.total(combination, "layers") == 17 * 40 == 680, "a place counts the places inside it"
    assert accounts.total(combination, "ratio-2") == 17 * 18
    assert accounts.total(combination, "dspark/blocks") == 51
    policies = accounts.model.sources.policies
    assert accounts.policy(policies["stream_weights"]) == 39_323_760
    assert accounts.policy(policies["stream_weights_dspark"]) == 2_949_282


def test_a_kernel_that_is_not_its_twin_is_found(copy: Copy) -> None:
    """The plain operation is the definition; the kernel is what is wrong."""
    kernel = "reference_impl/kernels/hc_split_sinkhorn.py"
    copy.edit(kernel, "comb[j, k] = comb[j, k] / total[0] + epsilon", "comb[j, k] = comb[j, k] / total[0] + 900 * epsilon")
    component = "stream_weights_for_attention/stream_combination"
    code, report = copy.run("verify", "--level", "cpu", "--force", "--format", "json", "--component", component)
    found = [f for f in report["findings"] if f["code"] == "kernel-mismatch"]
    assert code == 1 and found
    assert found[0]["component"] == component and found[0]["statement"] == "kernel"
    assert "largest difference" in found[0]["actual"] and found[0]["line"] > 0


def test_a_causal_property_must_be_able_to_fail(copy: Copy) -> None:
    """What is edited moves whatever the code does, so it proves nothing to say that it moves."""
    copy.edit(WEIGHTS, 'moves: ["${next_layer}hc_read#${other}.result"]', 'moves: ["hc_split_sinkhorn#${call}.reading"]')
    report = verifier.check(copy.root, MODEL)
    found = [f for f in report.findings if f.code == "schema-invalid"]
    assert found and "whatever the code does" in found[0].message


def test_gpu_facts_outlive_an_edit_of_prose_and_not_one_of_code(copy: Copy) -> None:
    """They speak of kernels at the configuration's sizes, and of nothing else of the spec."""
    copy.edit(WEIGHTS, "title: Stream combination", "title: Combination of streams")
    gpu = [o for o in verifier.check(copy.root, MODEL).outcomes if o.level == "gpu"]
    assert gpu and all(o.state == "passed" for o in gpu)
    copy.edit("reference_impl/kernels/hc_read.py", '"""', '"""An edit. ', 1)
    gpu = [o for o in verifier.check(copy.root, MODEL).outcomes if o.level == "gpu"]
    assert gpu and all(o.state == "stale" for o in gpu)


def test_without_tilelang_kernels_are_not_run_and_say_so(copy: Copy) -> None:
    """A missing package is no fault: exit 0, a reason on the statement, and never a green mark."""
    (copy.root / "tilelang.py").write_text("raise ImportError('TileLang is hidden')\n", "utf-8")
    try:
        component = "stream_weights_for_attention/stream_combination"
        code, report = copy.run("verify", "--level", "cpu", "--force", "--format", "json", "--component", component)
        assert code == 0, report
        assert report["not_run"] >= 1
        code, text = copy.run("verify", "--level", "cpu", "--force", "--component", component)
        assert f"not run {component} kernel: TileLang" in text
    finally:
        (copy.root / "tilelang.py").unlink()


def test_without_torch_the_static_level_stands_and_a_required_level_is_3(copy: Copy) -> None:
    (copy.root / "torch.py").write_text("raise ImportError('torch is hidden')\n", "utf-8")
    try:
        code, report = copy.run("verify", "--force", "--format", "json")
        assert code == 0
        levels = report["levels"]
        assert levels["static"]["passed"] > 0 and report["not_run"] > report["passed"]
        assert levels["meta"]["passed"] == levels["cpu"]["passed"] == 0
        assert report["executed"] == levels["gpu"]["passed"], "only recorded facts of a GPU count as executed"
        assert copy.run("verify", "--force", "--level", "cpu")[0] == 3
    finally:
        (copy.root / "torch.py").unlink()


def test_a_second_run_with_nothing_changed_prints_the_cached_report_in_full(copy: Copy) -> None:
    component = "stream_expansion"
    first = copy.run("verify", "--level", "cpu", "--component", component)
    second = copy.run("verify", "--level", "cpu", "--component", component)
    assert first[0] == second[0] == 0
    assert "nothing changed since the last run" in second[1]
    assert second[1].splitlines()[-1] == first[1].splitlines()[-1]


FACTS = {
    "changed": lambda text: text.replace('"passed"', '"failed"', 1),
    "cut off": lambda text: text[: len(text) // 2],
    "forged": lambda text: text.replace('"state": "failed"', '"state": "passed"').replace("elements in each", "elements"),
    "of another schema": lambda text: text.replace('"schema": 1', '"schema": 9', 1),
    "no JSON": lambda text: "facts",
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_are_checked_before_use(name: str, copy: Copy) -> None:
    """A changed, truncated or forged file is a finding, and its statements are not shown as verified."""
    path = copy.root / SPEC / "facts" / "meta.json"
    path.write_text(FACTS[name](path.read_text("utf-8")), "utf-8")
    report = verifier.check(copy.root, MODEL)
    assert [f for f in report.findings if f.code == "facts-invalid"]
    assert report.exit_code == 1
    assert not [o for o in report.outcomes if o.level == "meta" and o.state == "passed"]


def test_facts_older_than_the_code_are_stale(copy: Copy) -> None:
    """An edit of the implementation makes what was executed stale, not verified."""
    before = verifier.check(copy.root, MODEL)
    assert before.counts()["stale"] == 0 and before.executed > 400
    copy.edit("reference_impl/moe.py", '"""', '"""An edit. ', 1)
    report = verifier.check(copy.root, MODEL)
    assert report.counts()["stale"] > 400 and report.executed == 0
    assert [f for f in report.findings if f.code == "facts-stale" and f.severity == "warning"]


def test_sizes_of_a_small_configuration_must_differ(copy: Copy) -> None:
    """P05: with two equal sizes a transposed shape could not be told apart."""
    copy.edit(f"{SPEC}/model.yml", "positions: 27", "positions: 3")
    report = verifier.check(copy.root, MODEL)
    found = [f for f in report.findings if f.code == "config-invalid"]
    assert found and "T" in found[0].message and "n" in found[0].message
