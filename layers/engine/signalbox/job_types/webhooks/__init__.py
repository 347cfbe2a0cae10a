"""The job type deliver_webhook."""
