"""Forecast runs: found, submitted to RunPod, and followed."""
