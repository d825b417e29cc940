"""The stored data of a class, one noun a module, all of it in rows with a checksum."""
