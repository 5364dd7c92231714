"""The demo: a year of traffic messages of one city, delivered to 20,000 subscriptions, with a report."""
