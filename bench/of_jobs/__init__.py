"""What jobs cost and how long they wait."""
