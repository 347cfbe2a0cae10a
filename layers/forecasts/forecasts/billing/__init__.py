"""What Stripe says of an organisation."""
