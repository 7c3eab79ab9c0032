"""Text and ids: tokenizer, incremental decoding, stop strings, chat fragments."""
