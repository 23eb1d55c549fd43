"""A ranking -> an answer within a budget."""
