"""A person's own folder of photographs: reading it and checking it."""
