"""How is this said? One file for each kind of text; `rules(language)` puts them in order of precedence."""
