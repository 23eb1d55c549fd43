"""Measures searchsvc: retrieval quality and speed. Not part of the installed package."""
