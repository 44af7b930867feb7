"""The commands of `python -m study`, one module per command. Only this package prints."""
