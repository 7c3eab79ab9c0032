"""What the assistant hears: frames to speech edges, growing utterances to stable words to final text.

Drawing of the room: README.md beside this file. Nothing here opens a device or loads a model at import.
"""
