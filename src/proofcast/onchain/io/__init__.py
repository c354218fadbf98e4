"""Our contracts' outside: reading, sending, keys, compiled artefacts and the development chain."""
