"""Subscriptions of an engine whose results live on: the best k of a window, and live messages around somebody."""
