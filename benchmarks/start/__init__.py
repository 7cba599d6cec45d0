"""How long things take to start, and what they hold in memory: the service, the commands and the embedder."""
