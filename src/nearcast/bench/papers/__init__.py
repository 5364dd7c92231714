"""The experiments of a paper, run again, and the paper's claims checked against our measurements."""
