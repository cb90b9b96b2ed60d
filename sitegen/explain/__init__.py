# Longer words on every finding code, for `sitegen explain`.
"""Explain finding codes."""

from __future__ import annotations

from sitegen.diagnostics import CODES

#: Code -> what to do about it.
ADVICE: dict[str, str] = {
    "yaml-invalid": "Specs are YAML 1.2 without tags: quote text with ': ', ' #' or a first & * [ { % @ `.",
    "schema-invalid": "`sitegen schema component` prints the form; numbers stand without quotes, text with them.",
    "config-invalid": "Compare the field with the released configuration named under `config` in model.yml.",
    "unknown-symbol": "Add the letter to symbols.yml, or correct the spelling that the hint offers.",
    "unknown-reference": "Ids are those of the spec files; statements are named kind:id, such as step:logits.",
    "expression-invalid": "Counts are integers with + - * // % **; formulas are index notation with indices from 1.",
    "tex-invalid": "Only commands that have a MathML form are accepted; the finding names the unknown one.",
    "tex-differs": "Use in `tex` the same symbols and constants as in `expr`, or leave `tex` out.",
    "unsafe-text": "In double quotes \\a is a bell: write TeX in 'single quotes'. Remove direction overrides.",
    "path-outside": "Give paths relative to the project; links out of it are refused as well.",
    "number-unbound": "Quote figures by name: {d}, {row:scale}. An accidental one stands between backticks.",
    "count-mismatch": "Both sides are shown with their origin. Mend the one that is wrong; never the check.",
    "shape-mismatch": "Axes stand in the order in which the code holds them; small configurations tell them apart.",
    "dtype-mismatch": "Types of ports are those seen in a run, types of rows those of the stored tensors.",
    "tensor-unassigned": "Every element of a documented tensor needs one owner: let the slices of rows tile it.",
    "tensor-assigned-twice": "Two rows own the same elements: narrow one of the slices.",
    "formula-mismatch": "The finding gives the first index at which formula and implementation part.",
    "formula-not-distinguished": "Drive an input (values.vary) that tells it apart, or give a reason under indistinct.",
    "control-holds": "A control must fail by its margin; choose a regime in which it does, or drop it.",
    "gotcha-untested": "Name a control, a causal edit or a worked case with `instead`, or say why under unexecuted.",
    "property-mismatch": "State the property as the code has it; a tolerance is never widened to pass.",
    "tolerance-loose": "State the largest error seen, not a comfortable one.",
    "kernel-mismatch": "The plain operation is the definition; mend the kernel.",
    "checkpoint-mismatch": "The folder is of another model or revision, or a shard is damaged: fetch it again first.",
    "package-mismatch": "No check emits this yet.",
    "pin-moved": "Run `sitegen repin --write`.",
    "pin-changed": "Read the code again, then `sitegen repin --ack COMPONENT --reason TEXT`.",
    "pin-gone": "Name the new place under `code`, then `sitegen repin --write`.",
    "pin-ambiguous": "Quote a longer fragment or name the symbol, so that one place is meant.",
    "evidence-unused": "Cite the entry, or remove it.",
    "component-unreachable": "List the component under the parts of a place or of another component.",
    "equivalent-stale": "Remove the entry; `sitegen selftest` prints the ids of the mutants that are left.",
    "facts-stale": "Run `sitegen verify --write`; pages show the statements as stale until then.",
    "facts-invalid": "Facts are made by `sitegen verify --write`, not by hand.",
    "not-run": "`sitegen doctor` says what is missing here.",
}


def explanation(code: str) -> str:
    """What the code means, and what to do; the code must be one of `CODES`."""
    return f"{code}\n  {CODES[code]}\n  {ADVICE[code]}"
