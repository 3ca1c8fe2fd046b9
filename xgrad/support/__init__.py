"""Helpers for all other packages: files, nested containers, settings of a thread, and texts of
errors.
"""
