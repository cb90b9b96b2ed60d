"""Vision tower and aligner: patches of an image to rows of the language model's width (report 2.1.1, 4.2.1).

Axes: N patches row-major of an Nh x Nw grid, W vision width, H heads, d language width, r unshuffle ratio.
"""

from __future__ import annotations

from torch import Tensor, nn

from .config import ModelArgs
from .layers import Build, Linear, RMSNorm, Storage
from .ops import RotaryTables

NORM_EPS = 1e-6  # of every vision norm; the text side's comes from the configuration


class PatchEmbed(nn.Module):
    """A linear layer in place of a convolution (report 2.1.1: so that the Muon optimiser applies)."""

    def __init__(self, args: ModelArgs, build: Build) -> None:
        super().__init__()
        self.proj = Linear(3 * args.vision_patch_size**2, args.vision_dim, build, Storage.PLAIN, bias=True)

    def forward(self, patches: Tensor) -> Tensor:
        """[N, 3, patch, patch] -> [N, W]."""
        return self.proj(patches.flatten(1))


class VisionAttention(nn.Module):
    """Every patch attends to every patch."""

    def __init__(self, args: ModelArgs, build: Build) -> None:
        super().__init__()
        self.ops = build.ops
        self.heads, self.head_dim = args.vision_n_heads, args.vision_dim // args.vision_n_heads
        self.wqkv = Linear(args.vision_dim, 3 * args.vision_dim, build, Storage.PLAIN, bias=True)
        self.wo = Linear(args.vision_dim, args.vision_dim, build, Storage.PLAIN, bias=True)

    def forward(self, x: Tensor, rotary: RotaryTables) -> Tensor:
        """[N, W] -> [N, W]."""
        q, k, v = self.wqkv(x).unflatten(-1, (3, self.heads, self.head_dim)).unbind(1)  # [N, H, head]
        q, k = self.ops.rotate_halves(q, *rotary), self.ops.rotate_halves(k, *rotary)
        return self.wo(self.ops.full_attention(q, k, v).flatten(1))


class VisionMLP(nn.Module):
    """SwiGLU without clamp and without biases."""

    def __init__(self, args: ModelArgs, build: Build) -> None:
        super().__init__()
        self.ops = build.ops
        self.w1 = Linear(args.vision_dim, 2 * args.vision_inter_dim, build, Storage.PLAIN)
        self.w2 = Linear(args.vision_inter_dim, args.vision_dim, build, Storage.PLAIN)

    def forward(self, x: Tensor) -> Tensor:
        """[N, W] -> [N, W]."""
        return self.w2(self.ops.swiglu(self.w1(x)))


class VisionBlock(nn.Module):
    """Pre-norm attention and MLP on one residual stream."""

    def __init__(self, args: ModelArgs, build: Build) -> None:
        super().__init__()
        self.ops = build.ops
        self.norm1 = RMSNorm(args.vision_dim, build, eps=NORM_EPS)
        self.attn = VisionAttention(args, build)
        self.norm2 = RMSNorm(args.vision_dim, build, eps=NORM_EPS)
        self.mlp = VisionMLP(args, build)

    def forward(self, x: Tensor, rotary: RotaryTables) -> Tensor:
        """[N, W] -> [N, W]."""
        x = self.ops.add(x, self.attn(self.norm1(x), rotary))
        return self.ops.add(x, self.mlp(self.norm2(x)))


class ViT(nn.Module):
    """The tower: patch embedding, bidirectional blocks, norm; plain bf16 matrices, no rounding."""

    def __init__(self, args: ModelArgs, build: Build) -> None:
        super().__init__()
        self.ops = build.ops
        self.head_dim, self.base = args.vision_dim // args.vision_n_heads, args.vision_rope_theta
        self.dtype, self.wide = build.dtype, build.wide
        self.patch_embed = PatchEmbed(args, build)
        self.blocks = nn.ModuleList(VisionBlock(args, build) for _ in range(args.vision_n_layers))
        self.norm = RMSNorm(args.vision_dim, build, eps=NORM_EPS)

    def forward(self, patches: Tensor, rows: int, columns: int) -> Tensor:
        """[rows*columns, 3, patch, patch] -> [rows*columns, W]."""
        rotary = self.ops.vision_rotary(
            rows=rows, columns=columns, head_dim=self.head_dim, base=self.base, dtype=self.wide, device=patches.device
        )
        x = self.patch_embed(patches.to(self.dtype))
        for block in self.blocks:
            x = block(x, rotary)
        return self.norm(x)


class Aligner(nn.Module):
    """Gathers r x r patches into one cell and projects it to the language width; both matrices have biases."""

    def __init__(self, args: ModelArgs, build: Build) -> None:
        super().__init__()
        self.ops = build.ops
        self.ratio = args.vision_downsample_ratio
        self.w1 = Linear(args.vision_dim * self.ratio**2, args.dim, build, Storage.PLAIN, bias=True)
        self.w2 = Linear(args.dim, args.dim, build, Storage.PLAIN, bias=True)

    def forward(self, x: Tensor, rows: int, columns: int) -> Tensor:
        """[rows*columns, W] -> [cells, d], cells row-major."""
        cells = self.ops.unshuffle(x, rows=rows, columns=columns, ratio=self.ratio)
        return self.w2(self.ops.gelu(self.w1(cells)))
