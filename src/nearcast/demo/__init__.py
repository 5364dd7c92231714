"""The demo: a year of traffic messages of one city, delivered to 20,000 subscriptions, with a report.

demo_subscriptions.py   the shipped messages, and the subscriptions: some written by hand, the rest drawn
library.py              the run in this process;  pipeline.py  the run on Spark
result.py               the outcome, and the rows that screen and report show;  report.py, pictures.py  report.html
"""
