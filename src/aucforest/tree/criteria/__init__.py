"""Split criteria: the gain of a split from the class totals of its children."""
