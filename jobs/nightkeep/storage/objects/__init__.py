"""Prefixes of buckets, and the clients of their stores."""
