"""Sends pages to people: to the channels of a group in order, until one accepts the page."""
