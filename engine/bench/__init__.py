"""The engine's own measurements: the four seed discussions, and what becomes of long conversations."""
