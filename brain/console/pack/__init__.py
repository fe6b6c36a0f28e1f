"""Rules and runbooks for people who want to know what they mean and do."""
