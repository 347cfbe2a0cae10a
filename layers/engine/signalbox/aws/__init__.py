"""Make clients for AWS, and the calls that several rooms make in the same way."""
