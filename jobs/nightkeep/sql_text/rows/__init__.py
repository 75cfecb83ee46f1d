"""Conditions on rows: read from text, and evaluated in two ways that share no code."""
