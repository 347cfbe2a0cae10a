"""The modules here define options that several commands share, and make requests of them."""
