"""Measurements, and the check of a machine with a GPU."""
