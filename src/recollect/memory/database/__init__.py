"""The tables of long-term memory: their schema, their rows, and the transactions that change them."""
