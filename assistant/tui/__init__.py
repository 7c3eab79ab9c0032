"""The full-screen terminal app of `crosstalk chat`."""
