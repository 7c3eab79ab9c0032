"""Which page holds what: counts, hashes and token lists, no tensors."""
