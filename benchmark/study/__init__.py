"""The A/B study: an agent with file tools only, against the same agent with searchsvc as well."""
