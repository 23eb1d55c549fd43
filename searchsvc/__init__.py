"""Semantic and hybrid search over Markdown sections."""

__version__ = "0.1.0"
