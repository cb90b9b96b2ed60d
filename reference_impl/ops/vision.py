"""Vision tower and image spans: patches, two-dimensional rotary table, attention, unshuffle, grid plan (report 2.1.1).

Axes: N patches row-major of an Nh x Nw grid, W vision width, H heads, Q = head width / 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .precision import widen


class GridPlan(NamedTuple):
    """How an image of some pixel size enters the prompt."""

    rows: int  # language rows
    columns: int  # language columns
    height: int  # pixels to resize to
    width: int


class RotaryTables(NamedTuple):
    """Cosine and sine of the vision rotary angles."""

    cos: Tensor  # [N, 1, Q]
    sin: Tensor  # [N, 1, Q]


def patch_order(pixels: Tensor, *, patch: int) -> Tensor:
    """[height, width, 3] uint8 -> [N, 3, patch, patch] float32 in [-1, 1], patches row-major."""
    scaled = (pixels.float() / 255.0 - 0.5) / 0.5
    grid = scaled.unflatten(0, (-1, patch)).unflatten(2, (-1, patch))  # [Nh, patch, Nw, patch, 3]
    return grid.permute(0, 2, 4, 1, 3).flatten(0, 1)


def vision_rotary(*, rows: int, columns: int, head_dim: int, base: float, dtype: torch.dtype, device: torch.device
                  ) -> RotaryTables:  # fmt: skip
    """-> cos, sin [N, 1, head_dim/2]: the first half of the angles from the row, the second from the column."""
    half = head_dim // 2
    theta = 1.0 / (base ** (torch.arange(0, half, 2, dtype=dtype, device=device) / half))  # [Q/2]
    row = torch.arange(rows, dtype=dtype, device=device)[:, None, None].expand(rows, columns, 1)
    column = torch.arange(columns, dtype=dtype, device=device)[None, :, None].expand(rows, columns, 1)
    angles = torch.cat((row * theta, column * theta), dim=-1).flatten(0, 1).unsqueeze(1)
    return RotaryTables(angles.cos(), angles.sin())


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """[N, H, 2Q] x [N, 1, Q] -> [N, H, 2Q]: feature i turns with feature i+Q, unlike the text side's adjacent pairs."""
    first, second = widen(x).chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


def full_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """[N, H, D] x 3 -> [N, H, D]: softmax attention of every patch over all, scale D^-1/2, in at least float32."""
    scores = torch.einsum("qhd,khd->hqk", widen(q), widen(k)) * q.shape[-1] ** -0.5
    return torch.einsum("hqk,khd->qhd", torch.softmax(scores, dim=-1), widen(v)).to(v.dtype)


def swiglu(gate_up: Tensor) -> Tensor:
    """[N, 2F] -> [N, F]: silu(gate) * up, the gate first; no clamp."""
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up


def gelu(x: Tensor) -> Tensor:
    """[...] -> [...]: the exact form, x Phi(x)."""
    return F.gelu(x)


def unshuffle(x: Tensor, *, rows: int, columns: int, ratio: int) -> Tensor:
    """[N, W] -> [ceil(rows/r)*ceil(columns/r), W*r*r]: r x r patches into one cell; channel-major, then row, column.

    Zero padding right and bottom to a multiple of r.
    """
    grid = x.unflatten(0, (rows, columns)).permute(2, 0, 1)  # [W, rows, columns]
    grid = F.pad(grid, (0, -columns % ratio, 0, -rows % ratio))
    return F.pixel_unshuffle(grid, ratio).flatten(1).T  # pixel_unshuffle orders channel, row, column


def image_grid(*, width: int, height: int, patch: int, ratio: int, min_pixels: int, max_positions: int) -> GridPlan:
    """-> language grid and pixel size: small images grow to min_pixels, large ones shrink to max_positions.

    Pixels are rounded up to whole patches. A span that is too long loses language rows, one at a time, at the same
    aspect, until rows * (columns + 1) + 2 positions fit. ValueError if even one row does not.
    """
    scale = max(1.0, math.sqrt(min_pixels / (width * height)))
    high, wide = (-(-int(side * scale) // patch) for side in (height, width))  # patches
    rows, columns = -(-high // ratio), -(-wide // ratio)
    while rows * (columns + 1) + 2 > max_positions:
        rows -= 1
        if rows == 0:
            raise ValueError(
                f"image grid: {width} x {height} pixels need more than {max_positions} positions in a single row"
            )
        high = rows * ratio
        wide = max(1, high * width // height)
        columns = -(-wide // ratio)
    return GridPlan(rows, columns, high * patch, wide * patch)


def span_types(*, rows: int, columns: int) -> list[int]:
    """-> rows * (columns + 1) + 2 types: 0 start, per row `columns` times 1 (image cell) and 2 (row end), 3 end."""
    return [0, *([1] * columns + [2]) * rows, 3]
