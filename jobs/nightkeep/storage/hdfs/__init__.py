"""Folders of HDFS, and the client of a namenode."""
