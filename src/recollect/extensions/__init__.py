"""The path of further sessions in the Agents SDK: changing the package name in an import is enough."""
