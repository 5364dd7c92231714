"""What matches can carry along: columns of both tables, distances and matched words; and the subscriptions as given."""
