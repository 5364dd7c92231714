"""Streams for subscriptions of kind `top` and for moving subscriptions: drawn, run by several methods, compared."""
