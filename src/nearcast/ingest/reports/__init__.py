"""Reports on ingested tables, as HTML pages with pictures."""
