"""`/api`: everything the pages show and do, as JSON, with an OpenAPI schema.

FastAPI, which Prefect brings along, reads and checks what comes in by the types of the functions and writes the schema
from them; what goes out is the data the pages are rendered from.
"""
