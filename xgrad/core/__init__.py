"""The tensor, the op that is applied to it, the graph that it records and the engine that walks it backwards."""
