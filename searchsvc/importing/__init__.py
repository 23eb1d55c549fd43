"""From books and papers to Markdown: PDF, EPUB, and Markdown itself."""
