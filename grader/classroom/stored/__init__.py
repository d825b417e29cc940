"""What the ledger stores of a class, by noun; all of it rows with a checksum."""
