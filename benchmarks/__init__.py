"""What is measured: each file one command, with a table it prints."""
