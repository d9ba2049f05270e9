"""What the steps share: the program, stores to start from, the table of verbs, the oracle, and the runner."""
