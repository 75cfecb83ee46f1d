"""The stages of a run: plan, execute, verify, publish. None of them imports another."""
