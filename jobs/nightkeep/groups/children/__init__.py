"""Calls that other processes answer, so that metadata which kills its reader ends only a child."""
