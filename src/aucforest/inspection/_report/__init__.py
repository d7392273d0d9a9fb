"""What a report is made of: rows with their scores, figures, plots, tables and the page."""
