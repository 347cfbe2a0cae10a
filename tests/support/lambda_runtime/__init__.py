"""Hold what the Lambda runtime brings to a function: the runtime client and boto3, and a search path.

`requirements.in` names the versions of Lambda's python3.13, older than those that the laptop works with, so that what
is tried with them may count on no more than Lambda has.
"""
