"""What is particular to languages: presets of the analyser, and words of scripts that are written without spaces."""
