"""How is this said? One file for each kind of text; `voices.speakable` asks them in order of precedence."""
