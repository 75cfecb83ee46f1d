"""Documents of a run -> events -> messages -> receivers, each once."""
