"""Files that nothing needs: listed, told from live ones, put aside, brought back or removed.

The order is what keeps live files safe. Candidates are listed first; then everything that keeps files alive is read,
until another look finds nothing new; a file that was written meanwhile is not a candidate, one that was committed
meanwhile is live. Only then is anything moved, each file after one more look at it.
"""
