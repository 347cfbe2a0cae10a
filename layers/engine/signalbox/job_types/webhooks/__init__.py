"""Implement the job type deliver_webhook."""
