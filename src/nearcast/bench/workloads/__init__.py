"""Workloads: drawn or real subscriptions and messages."""
