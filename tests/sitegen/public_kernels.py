"""Kernels of P17 and P18."""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them.

import tilelang
import tilelang.language as T

BODY = """
import tilelang
import tilelang.language as T


def build(eps):
    @T.prim_func
    def shift(x: T.Tensor((8,), "float32"), y: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(8):
                y[i] = x[i] + eps

    return tilelang.compile(shift, target="c", execution_backend="cython")
"""


def reduce_on_fragments():
    """A kernel that the host target cannot lower; raises at compile time."""

    @T.prim_func
    def total(x: T.Tensor((8, 8), "float32"), y: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            values = T.alloc_fragment((8, 8), "float32")
            sums = T.alloc_fragment((8,), "float32")
            for i, j in T.grid(8, 8):
                values[i, j] = x[i, j]
            T.reduce_sum(values, sums, dim=1)
            for i in T.serial(8):
                y[i] = sums[i]

    return tilelang.compile(total, target="c", execution_backend="cython")
