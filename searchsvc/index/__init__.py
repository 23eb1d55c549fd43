"""Notes and vectors -> disk and back."""
