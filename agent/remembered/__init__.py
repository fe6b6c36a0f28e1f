"""What the agent remembers over its restarts and over reboots, in small files of its data folder."""
