"""The commands of `nearcast pipeline`. spark_console.py opens the Spark session and shows its progress."""
