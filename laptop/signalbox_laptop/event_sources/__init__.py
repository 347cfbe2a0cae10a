"""What invokes functions: EventBridge's rules and SQS event source mappings."""
