"""The experiments of a paper, run again, and the paper's claims checked against our measurements.

*.toml          one file for each paper: data sets, figures, claims;  paper_file.py reads them
paper.py        a paper as data: Paper, Figure, Claim
schedule.py     the runs that figures need, shared where possible;  result.py runs and stores them
points.py       the points of a figure;  claims.py  verdicts on the claims
page.py         the results as a Markdown page;  picture.py  a figure as a picture
"""
