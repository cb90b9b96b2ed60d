"""The living example: a few tokens from a tiny random model."""

from __future__ import annotations

import re

import pytest
import tiny_models
import torch

from reference_impl.generate import Generated, confirmed_drafts, generate, main


def test_drafting_does_not_change_the_tokens_and_the_seed_decides_them(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for arguments in (["--steps", "5"], ["--steps", "5", "--no-drafts"], ["--steps", "5", "--seed", "1"]):
        assert main(arguments) == 0
        outputs.append(re.search(r"^tokens  (.*)$", capsys.readouterr().out, re.M)[1].split())
    assert outputs[0] == outputs[1] and outputs[0] != outputs[2] and len(outputs[0]) == 5


def test_steps_follow_one_another() -> None:
    """In float64, where decoding equals one long prefill of the same tokens; rounding could flip a choice."""
    model = tiny_models.tiny_model()
    steps = list(generate(model, [3, 1, 4, 1, 5], 4, drafts=True))
    assert [step.position for step in steps] == [4, 5, 6, 7]
    assert steps[0].drafts == () and all(len(step.drafts) == model.args.dspark_block_size for step in steps[1:])
    ids = torch.tensor([[3, 1, 4, 1, 5, *(step.token for step in steps[:3])]])
    assert int(model(ids, 0).ids) == steps[3].token


def test_drafts_count_up_to_the_first_miss() -> None:
    steps = [
        Generated(0, 7, ()),
        Generated(1, 8, (9, 5, 6)),  # 9 confirmed, 5 missed, 6 not counted though it would fit
        Generated(2, 9, (1, 2, 3)),
        Generated(3, 1, ()),
        Generated(4, 6, ()),
    ]
    assert confirmed_drafts(steps) == (2, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--steps", "0"], "must be 1 or more"), (["--steps", "500"], "exceed the 123 positions of the caches")],
)
def test_wrong_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2 and message in capsys.readouterr().err
