"""Sources of ansible-rulebook for the comparison."""
