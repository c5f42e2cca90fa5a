"""What people and programs see. Imported by nothing; lazy, so that `--help` and `ingest` stay quick."""
