"""Turn JSON into the one sequence of bytes that everybody can make of it again."""
