"""DeepSeek-V4.1-Flash as a reference implementation: plain PyTorch first, readable from the operations up."""
