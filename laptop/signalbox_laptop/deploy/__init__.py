"""The template deployed to moto's CloudFormation, and what that leaves out."""
