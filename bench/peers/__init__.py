"""Other job queues, measured beside."""
