"""Spoken scenarios: what a user says, when and where, what must follow, and how that is measured."""
