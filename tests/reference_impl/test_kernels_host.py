"""What TileLang 0.1.15 cannot do on the host target: the reasons for the twins' form, as expected compile errors.

When one of these starts to compile, `kernels/targets.py` can shed the matching workaround.
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import pytest
import torch
from kernel_cache import kernel_cache  # noqa: F401

tilelang = pytest.importorskip("tilelang", reason="the twins need the package tilelang")
import tilelang.language as T  # noqa: E402

from reference_impl.kernels.number_formats import constant  # noqa: E402
from reference_impl.kernels.targets import ON_HOST, Placement, compile_program  # noqa: E402


def copy_program(dtype: str):
    @T.prim_func
    def copy_values(x: T.Tensor((64,), dtype), y: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                y[i] = x[i]

    return copy_values


def tile_product(on: Placement, loop=None):
    """A 32 x 32 product through tiles that live where `on` says."""
    loop = loop or on.tile_loop

    @T.prim_func
    def product(x: T.Tensor((32, 32), "float32"), w: T.Tensor((32, 32), "float32"), y: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32):
            x_tile = on.shared((32, 32), "float32")
            w_tile = on.shared((32, 32), "float32")
            total = on.fragment((32, 32), "float32")
            for i, j in loop(32, 32):
                x_tile[i, j] = x[i, j]
            for i, j in loop(32, 32):
                w_tile[i, j] = w[i, j]
            T.clear(total)
            T.gemm(x_tile, w_tile, total, transpose_B=True)
            for i, j in loop(32, 32):
                y[i, j] = total[i, j]

    return product


def row_maximum(fragment):
    @T.prim_func
    def maximum(x: T.Tensor((8, 8), "float32"), y: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            values = fragment((8, 8), "float32")
            highest = fragment((8,), "float32")
            for i, j in T.grid(8, 8):
                values[i, j] = x[i, j]
            T.reduce_max(values, highest, dim=1)
            for i in T.serial(8):
                y[i] = highest[i]

    return maximum


def magnitude_program():
    @T.prim_func
    def magnitude(x: T.Tensor((64,), "float32"), y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                y[i] = T.abs(x[i])

    return magnitude


UNSUPPORTED = {
    "bfloat16 is no C type": (lambda: copy_program("bfloat16"), "Cannot convert type bfloat16 to C type"),
    "float8_e4m3fn is no C type": (
        lambda: copy_program("float8_e4m3fn"), "Cannot convert type float8_e4m3fn to C type",
    ),
    "a product does not sum into a fragment": (
        lambda: tile_product(Placement(T.grid, T.alloc_local, T.alloc_fragment, "float32")),
        "CPU fill only supports local and global buffers",
    ),
    "two shared tiles do not compile": (
        lambda: tile_product(Placement(T.Parallel, T.alloc_shared, T.alloc_local, "float32"), T.grid),
        "dynamic shared memory|not passed in as API arguments",
    ),
    "a fragment is not reduced": (
        lambda: row_maximum(T.alloc_fragment), "CPU reduce only supports local src",
    ),
    "fabs has no host form": (magnitude_program, "Unresolved call .*fabs"),
    "a parallel loop cannot index a thread's own tile": (
        lambda: tile_product(ON_HOST, T.Parallel), "Local buffer .* is indexed by T.Parallel",
    ),
}  # fmt: skip


@pytest.mark.parametrize("program, text", UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_the_host_target_refuses(program, text):
    with pytest.raises(Exception, match=text):
        compile_program(program(), "c")


def test_the_same_product_and_reduction_compile_from_local_tiles(normal):
    x, w, y = normal(32, 32), normal(32, 32), torch.empty(32, 32)
    compile_program(tile_product(ON_HOST), "c")(x, w, y)
    assert (y - x @ w.T).abs().max() <= 1e-5
    values, highest = normal(8, 8), torch.empty(8)
    compile_program(row_maximum(T.alloc_local), "c")(values, highest)
    assert torch.equal(highest, values.amax(1))


def test_a_plain_constant_loses_digits_on_the_host_and_constant_does_not():
    """1/6 is printed as 1.666667e-01, a float32 step away from 1/6."""

    def program(sixth):
        @T.prim_func
        def times_sixth(x: T.Tensor((4,), "float32"), y: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.serial(4):
                    y[i] = x[i] * sixth

        return times_sixth

    x, y = torch.ones(4), torch.empty(4)
    exact = torch.full((4,), 1 / 6)
    compile_program(program(constant(1 / 6)), "c")(x, y)
    assert torch.equal(y, exact)
    compile_program(program(T.float32(1 / 6)), "c")(x, y)
    assert not torch.equal(y, exact), "TileLang prints float constants in full now: kernels can use T.float32"
