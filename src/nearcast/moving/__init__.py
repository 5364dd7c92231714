"""Subscriptions that move, and messages that live for a while: who gains and who loses which message.

    messages  ->  live_messages.py --+
                                     +-->  a method  -->  pairs  --moving_set.py-->  net changes of a step
    places    ->  subscribers.py ----+

A method is one file or one folder here; its module has the method's name, with `_` for `-` and `_plus` for `+`. A
method is imported when it is first used.
"""
