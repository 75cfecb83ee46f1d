"""Sweep, expiry and restore of one table, and the check of files afterwards."""
