"""HTTP below the routes: the listening socket, connections, request bodies, the gate, and the process."""
