"""`python -m reference_impl.generate`: a few tokens from a tiny random model on the CPU, as an example of the whole.

Prefill, then one token a step. With drafts, every step also drafts, and the drafts that the next steps confirm are
counted: the released code has no acceptance loop, so a draft never replaces a step here either.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import NamedTuple

import torch

from .config import ModelArgs
from .initialise import randomise
from .model import Transformer


class Generated(NamedTuple):
    """One decode step of a batch of one."""

    position: int  # of the token that went in
    token: int  # sampled for the next position
    drafts: tuple[int, ...]  # for the positions after that; empty without drafting


def tiny_model(seed: int) -> Transformer:
    """A random model of ModelArgs.tiny(); its token map folds ids by remainder, as there is no tokenizer."""
    args = ModelArgs.tiny()
    token_map = torch.arange(args.vocab_size) % args.engram_compressed_vocab_size
    model = Transformer(args, token_map=token_map)
    randomise(model, seed)
    return model


def generate(model: Transformer, prompt: list[int], steps: int, *, drafts: bool) -> Iterator[Generated]:
    """Yields a step at a time, the prefill first; ValueError when prompt and steps do not fit the caches."""
    step = model(torch.tensor([prompt]), 0)
    if drafts:
        model.draft(step.ids, 0, step.draft_context)  # fills the rings with the prompt's context
    yield Generated(len(prompt) - 1, int(step.ids), ())
    for position in range(len(prompt), len(prompt) + steps - 1):
        step = model(step.ids[:, None], position)
        drafted = model.draft(step.ids, position, step.draft_context) if drafts else None
        yield Generated(position, int(step.ids), () if drafted is None else tuple(drafted.ids[0, 1:].tolist()))


def confirmed_drafts(steps: list[Generated]) -> tuple[int, int]:
    """-> drafts that the greedy tokens confirm, each pass up to its first miss; drafts that could be checked."""
    confirmed = checked = 0
    for index, step in enumerate(steps):
        followers = [later.token for later in steps[index + 1 : index + 1 + len(step.drafts)]]
        checked += len(followers)
        for draft, token in zip(step.drafts, followers, strict=False):
            if draft != token:
                break
            confirmed += 1
    return confirmed, checked


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reference_impl.generate", description=__doc__)
    parser.add_argument("--steps", type=int, default=16, help="tokens to generate")
    parser.add_argument("--prompt", type=int, default=24, help="length of the random prompt")
    parser.add_argument("--seed", type=int, default=0, help="of weights and prompt")
    parser.add_argument("--no-drafts", action="store_true", help="leave the drafter out")
    options = parser.parse_args(argv)
    if options.steps < 1 or options.prompt < 1:
        parser.error("--steps and --prompt must be 1 or more")
    model = tiny_model(options.seed)
    room = model.args.max_seq_len - 1 - (0 if options.no_drafts else model.args.dspark_block_size)
    if options.prompt + options.steps > room:
        parser.error(f"--prompt {options.prompt} and --steps {options.steps} exceed the {room} positions of the caches")
    generator = torch.Generator().manual_seed(options.seed)
    prompt = torch.randint(model.args.vocab_size, (options.prompt,), generator=generator).tolist()

    done = []
    for step in generate(model, prompt, options.steps, drafts=not options.no_drafts):
        done.append(step)
        progress(len(done), options.steps)
    print(f"prompt  {' '.join(map(str, prompt))}")
    print(f"tokens  {' '.join(str(step.token) for step in done)}")
    if not options.no_drafts:
        confirmed, checked = confirmed_drafts(done)
        print(f"drafts  {confirmed} of {checked} confirmed by the next steps (a random model: chance)")
    return 0


def progress(done: int, total: int) -> None:
    """A bar on a terminal's stderr, nothing elsewhere."""
    if sys.stderr.isatty():
        filled = 30 * done // total
        bar = "#" * filled + "." * (30 - filled)
        print(f"\r[{bar}] {done}/{total} tokens", end="\n" if done == total else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
