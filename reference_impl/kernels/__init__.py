"""TileLang twins of the heavier operations, a module each: same name and signature as in `ops`, plus `target`.

The plain operation in `reference_impl.ops` is the definition and each twin is compared with it. A twin is one source
for the host ("c", run by the C++ compiler, no GPU) and for CUDA; `targets.Placement` names the few words that differ.
`python -m reference_impl.kernels.check` runs every twin against its definition on the machine it is started on.
"""
