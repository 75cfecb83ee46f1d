"""Orphan files: listed, distinguished from live files, moved to quarantine, restored or deleted.

The order of steps keeps live files safe. First the candidates are listed. Then all roots are read, until no new root
appears. A file written in between is no candidate; a file committed in between is live. Only then is a file removed,
after one more check of that file.
"""
