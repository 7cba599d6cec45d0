"""One reader for each program: from the records of its transcript to steps. They do no I/O."""
