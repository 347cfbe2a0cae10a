"""Write down what happens in chains of hashes, and verify them."""
