"""What happens, in which order. Prefect is imported by `flows.improve` and `flows.schedule` alone."""
