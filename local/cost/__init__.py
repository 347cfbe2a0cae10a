"""What a stack costs a month: quantities from the template, from measurements and from what is given; list prices."""
