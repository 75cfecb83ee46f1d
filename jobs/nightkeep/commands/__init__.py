"""The commands: arguments -> a function of the package -> text or one JSON document on stdout."""
