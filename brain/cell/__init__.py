"""Who belongs to a cell: its certificate authority, its nodes, and the tokens with which nodes join (docs/cell.md)."""
