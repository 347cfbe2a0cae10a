"""Run the jobs that an SQS batch names to their ends, many of them side by side: the worker.

worker.py   one invocation: reads the messages, starts driver and main thread, answers SQS
core.py     decides which jobs begin when, and when ends are recorded; no I/O
driver.py   answers the core: claims, records and renews in Postgres, and hands jobs to their runners
runners.py  the runners: a pool of threads, the event loop, the main thread
attempt.py  one attempt at one job, from its payload to its verdict
outbox.py   publishes what has been committed: messages to the lanes, changes of jobs to the event bus
"""
