"""`crosstalk chat`: a conversation at this machine's own microphone and speaker, or typed."""
