"""`nearcast bench moving`: methods for moving subscriptions on one workload, measured by what a step consists of."""
