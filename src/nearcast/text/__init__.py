"""Text analysis: texts to tokens (strings), tokens to terms (integers), and boolean expressions over tokens."""

from nearcast.text.analyser import ANALYSER_VERSION, Analyser
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import Expression, Parser, parse
from nearcast.text.vocabulary import Vocabulary

__all__ = [
    "ANALYSER_VERSION",
    "Analyser",
    "Clause",
    "Expression",
    "Parser",
    "Vocabulary",
    "clauses",
    "parse",
]
