"""Bytes of open formats that more than one table format stores: what they hold, without what a table means by it."""
