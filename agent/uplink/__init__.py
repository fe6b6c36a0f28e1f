"""From the node to the brain: the spool, the publisher of its events, heartbeats, and the connection that carries them."""
