"""What a stack on AWS or on the laptop tells: rules, status, logs."""
