"""Views of computations: recorded graphs, and profiles of time and memory."""
