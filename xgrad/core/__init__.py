"""Tensors, ops, the recorded graph, and the engine of the backward pass."""
