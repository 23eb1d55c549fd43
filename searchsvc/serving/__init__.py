"""The service, spoken to over MCP."""
