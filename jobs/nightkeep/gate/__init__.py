"""Code that the gates of several formats share. No rewrite imports it."""
