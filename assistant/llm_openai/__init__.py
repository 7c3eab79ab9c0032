"""A language model elsewhere: any server that speaks OpenAI's chat protocol, instead of the engine in this process."""
