"""Dissemination: which rows does an arriving message concern? One module or folder for each index of rows."""
