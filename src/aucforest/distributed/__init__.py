"""Data beyond one machine's memory, and beyond one machine."""
