"""Run moto in a process of its own, patched first."""
