"""The doors, one module each: `add_routes(application)`."""
