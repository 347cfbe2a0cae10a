"""Read what Stripe says of an organisation."""
