"""The Spark session: Java, workers, failures and progress."""
