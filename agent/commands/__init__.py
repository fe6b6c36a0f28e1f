"""Commands to this node: verified, written to a journal, run once, answered; their evidence is uploaded."""
