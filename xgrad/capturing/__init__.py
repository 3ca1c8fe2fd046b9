"""Capture: record a step once, and replay it."""

from xgrad.capturing.captured import Captured, CaptureWarning, capture

__all__ = ["CaptureWarning", "Captured", "capture"]
