"""What a table needs and handles, and which of its policy does not fit it. Changes nothing."""
