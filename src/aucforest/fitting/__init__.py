"""The fit: sampling, coding, growing trees over rows in memory, in files or on other machines."""
