"""Measurements: each file answers one question and prints its figures."""
