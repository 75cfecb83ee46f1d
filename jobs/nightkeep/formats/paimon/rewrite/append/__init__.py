"""What operations do to Paimon tables without keys: packing, clustering and deletion vectors of appended files."""
