# The gate put to the test: the user's own project in wrong forms, and whether the checks notice.
"""Mutate a project and count the mutants that its checks catch.

Floors, lowest first: mutant, yamltext and expressions, rewrites, specs and code (what is changed); scratch, forks,
reimport, gate, workers (how it is tried); equivalents, sample, score, record, report; run puts them together.
"""
