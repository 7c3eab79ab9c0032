"""What happened in a conversation, on the audio clock: recorded, written as JSON, drawn as a page."""
