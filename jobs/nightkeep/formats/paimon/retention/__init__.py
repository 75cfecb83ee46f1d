"""Which files of Paimon tables are needed, by which versions, and which versions may go."""
