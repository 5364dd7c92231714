"""The command `nearcast`, one file per command; main.py registers them.

match, methods, generate, demo, warmup, docs    one command each
pipeline/   `nearcast pipeline`;   bench/   `nearcast bench`
console.py  output and progress bars;   options.py  options that commands share
"""
