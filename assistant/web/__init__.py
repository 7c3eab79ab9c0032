"""`crosstalk web`: one page on this machine, its microphone and speaker reached through the browser."""
