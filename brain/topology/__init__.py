"""Where nodes stand: the file that says so, what is wrong with it, and what other systems know of it."""
