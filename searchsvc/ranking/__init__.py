"""A question -> rankings -> one ranking."""
