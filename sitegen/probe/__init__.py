# The levels that run the implementation.  Only these modules import torch, and only inside functions
# that the static level never calls.
"""Run the implementation and compare it with what the pages state."""
