"""Text -> conditions on rows, evaluated in two ways that share no code."""
