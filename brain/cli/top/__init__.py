"""`gpuward top`: incidents, runs and nodes live in a terminal, and what a person may say about them.

A client of the API as every other command. Only `app`, `listing` and `questions` know Textual, and only a terminal imports them.
"""
