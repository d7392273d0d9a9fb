"""The command line: `app` has a module for each command."""
