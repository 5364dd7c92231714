"""Kind `top`: every subscription keeps the best k messages of a sliding window.

score.py          the score of a message for a subscription: one definition for all methods
rows.py           the live subscriptions as rows
incoming.py       messages as terms with values
window.py         the messages of the window, and which of them expire
method.py         the contract of a method, and the registry
brute.py          the oracle
topk.py           `nc.TopK`: tables in, tables of changes out
"""
