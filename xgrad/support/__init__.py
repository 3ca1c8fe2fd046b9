"""Helpers for all other packages: files, nested containers, thread settings, error texts."""
