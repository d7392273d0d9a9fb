"""Columns of tables: kinds of values, categories, and the features that are made from columns."""
