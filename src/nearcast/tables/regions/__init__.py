"""Every form of a place of a subscription, as text."""
