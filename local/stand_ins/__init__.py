"""Small HTTP servers that answer for the outside services of which AWS's stand-in has nothing."""
