"""Reports in the formats of other tools and platforms."""
