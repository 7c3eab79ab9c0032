"""Sound as data: constants of the audio clocks, files, sample rates, synthesised noises."""
