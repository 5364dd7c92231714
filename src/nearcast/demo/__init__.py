"""The demo: a year of traffic messages of one city, delivered to subscriptions, with a report."""
