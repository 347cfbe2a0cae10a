"""EventBridge's rules on the laptop: a clock, what a rule sends to a target, and delivery with its retries.

Rules and targets are read through the events API, which here is moto's: it keeps them and never fires one.
"""
