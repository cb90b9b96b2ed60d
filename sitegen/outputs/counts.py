# Parameters by policy and component, as text and as JSON.
"""What `sitegen count` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sitegen import accounting, loader, resolver
from sitegen.diagnostics import SitegenError, nearest


def count_model(root: Path, name: str, wanted: tuple[str, ...] = ()) -> dict[str, Any]:
    """The JSON of one model: `policies` and `components`; raises `SpecInvalid`."""
    model = resolver.resolve(loader.load(root, name))
    accounts = accounting.count(model)
    for policy in wanted:
        if policy not in model.sources.policies:
            raise SitegenError(f"no policy {policy!r} in {name}", hint=nearest(policy, model.sources.policies))
    table = accounts.table
    policies = {}
    for id, policy in model.sources.policies.items():
        if wanted and id not in wanted:
            continue
        names = {
            n for t in policy.terms if t.sign > 0 for i in accounts.term_instances(t) for r in i.rows for n in r.tensors
        }
        names -= {
            n for t in policy.terms if t.sign < 0 for i in accounts.term_instances(t) for r in i.rows for n in r.tensors
        }
        scales = stored = 0
        for tensor in names:
            entry = table.get(tensor)
            scale = table.get(tensor.removesuffix(".weight") + ".scale") if tensor.endswith(".weight") else None
            stored += accounting.elements(entry.stored) if entry else 0
            scales += accounting.elements(scale.shape) if scale else 0
        policies[id] = {"parameters": accounts.policy(policy), "scales": scales, "stored_elements": stored}
    components = {}
    for id in model.order():
        each = accounts.per_instance(id)
        components[id] = {
            "per_instance": each[0] if len(each) == 1 else each,
            "instances": accounts.num_instances(id),
            "total": accounts.total(id),
        }
    return {"schema": 1, "model": name, "policies": policies, "components": components}


def counts_text(result: dict[str, Any]) -> str:
    """The same for people."""
    lines = [result["model"], "", "policies"]
    width = max([len(n) for n in (*result["policies"], *result["components"])], default=0)
    for name, value in result["policies"].items():
        lines.append(
            f"  {name:{width}}  {value['parameters']:>20,}"
            + (f"  scales {value['scales']:,}" if value["scales"] else "")
        )
    lines += ["", "components (per instance × instances = total, with parts)"]
    for name, value in result["components"].items():
        each = value["per_instance"]
        shown = f"{each:,}" if isinstance(each, int) else " | ".join(f"{n:,}" for n in each)
        lines.append(f"  {name:{width}}  {shown:>16} × {value['instances']:<3} = {value['total']:,}")
    return "\n".join(lines)
