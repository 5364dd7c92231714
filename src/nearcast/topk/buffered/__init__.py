"""Buffers of the best messages and runners-up for each row, and the steps that keep them right."""
