"""The assistant as a service: no screen, no terminal, weeks without a restart."""
