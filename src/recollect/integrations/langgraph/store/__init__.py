"""The store of LangGraph: items by namespace and key, found by filters and by meaning."""
