"""A note file -> a note with its sections."""
