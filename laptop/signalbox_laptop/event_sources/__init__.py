"""Invoke functions as AWS does from EventBridge's rules and SQS event source mappings."""
