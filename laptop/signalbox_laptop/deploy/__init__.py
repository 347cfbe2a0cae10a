"""Deploy the template to moto's CloudFormation, and add what that leaves out."""
