"""The tables of long-term memory: the schema, the rows, and the transactions that change them."""
