"""What programs see over HTTP. Starlette at the edge; what is decided and stored is decided and stored elsewhere."""
