"""The verbs of the command line: arguments -> stages -> text, or one JSON document, on stdout."""
