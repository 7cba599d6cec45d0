"""`recollect mcp install`: the entry of our MCP server in the configuration files of coding agents."""
