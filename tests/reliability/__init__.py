"""The promises of the reliability table, one file for each or for a few that belong together."""
