"""Names for the places of an answer, in the words of its exercise. Imports no torch."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from grader.course.course import Exercise
from grader.course.stubs import untouched_text
from grader.syntax_trees import syntax_tree

OUTPUT, ANSWER = "the output", "the answer"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
SAID = {  # the names that some cases give to a part of their answer
    "apart": "the pattern of weights that are dropped without the others",
    "attention_weights": "`attention_weights` after the call",
    "drops": "whether anything is dropped",
    "factors": "the factors of the kept weights",
    "few": "the number of values that dropout gives",
    "finite": "the pattern of finite numbers",
    "kept": "the sum that dropout keeps",
    "keys": "the keys",
    "largest": "the largest output",
    "logits": "the logits",
    "others": "the list of other parameters",
    "outputs": "the outputs",
    "smallest": "the smallest output",
    "values": "the values",
    "weights": "the weights",
    "zeros": "whether a weight is kept as 0",
}


@dataclass(frozen=True)
class Words:
    """The words for the places in answers of an exercise, whose calls take these `arguments`."""

    arguments: Mapping[str, tuple[str, ...]]  # by function; a module's `forward` by class

    def of(self, place: str, sentence: str = "") -> str:
        """Return the name of a place in the answer to the case with this sentence."""
        if not place:
            return OUTPUT
        words = [word for word in place.split(" ") if not word.isdigit()]
        if not words:
            return _ordinal(int(place.partition(" ")[0]))
        name = " ".join(words)
        if name == "output":
            return OUTPUT
        if name == "input":
            number = int(place.rpartition(" ")[2])
            return f"the gradient of {self.argument(number, sentence)}"
        if words[0] == "parameter":
            return f"the gradient of `{' '.join(words[1:])}`"
        if name in SAID:
            return SAID[name]
        return f"the {name}" if " " in name else f"`{name}`"

    def argument(self, number: int, sentence: str = "") -> str:
        """Return the name of an argument, counted from 0, of the call in a sentence."""
        said = {name for name in self.arguments if name in sentence} or self._taking(sentence)
        names = {
            self.arguments[each][number] for each in said if number < len(self.arguments[each])
        }
        return f"`{names.pop()}`" if len(names) == 1 else f"argument {number + 1}"

    def _taking(self, sentence: str) -> set[str]:
        """Return the calls whose arguments a sentence names most; all if it names none."""
        words = set(re.findall(r"\w+", sentence))
        named = {call: len(words.intersection(given)) for call, given in self.arguments.items()}
        return {call for call, number in named.items() if number == max(named.values())}


@functools.lru_cache(maxsize=128)
def words_of(exercise: Exercise) -> Words:
    """Return the words for the answers of an exercise."""
    return Words(dict(_calls(ast.iter_child_nodes(syntax_tree(untouched_text(exercise))))))


def _calls(nodes: Iterator[ast.AST]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the functions, and the `forward` of each class, with the names of their arguments."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            yield node.name, tuple(each.arg for each in node.args.args)
        elif isinstance(node, ast.ClassDef):
            for name, arguments in _calls(ast.iter_child_nodes(node)):
                if name == "forward":
                    yield node.name, arguments[1:]


def is_gradient(place: str) -> bool:
    """Return whether a place holds a gradient."""
    return re.search(r"(^| )(input|parameter) ", place) is not None


def list_of(place: str) -> str:
    """Return the place of the list that holds a number, or the number's own."""
    before, _, last = place.rpartition(" ")
    return before if last.isdigit() else place


def pairs_of_names(
    asked: Collection[str],
    found: Collection[str],
    may_be: Callable[[str, str], bool] = lambda asked, found: True,
) -> dict[str, str]:
    """Return the found names that stand for names asked for, in pairs.

    The most similar pairs come first.
    """
    pairs: dict[str, str] = {}
    possible = [pair for pair in itertools.product(asked, found) if may_be(*pair)]
    for one, other in sorted(possible, key=lambda pair: (-_alike(*pair), pair)):
        if one not in pairs and other not in pairs.values():
            pairs[one] = other
    return pairs


def _alike(one: str, other: str) -> float:
    """Return the similarity of two names: `W_query` is more like `q_proj` than `W_value` is."""
    words = [re.split(r"[_.]", name.lower()) for name in (one, other)]
    pairs = [(a, b) for a, b in itertools.product(*words) if a and b]
    same = sum(a.startswith(b) or b.startswith(a) for a, b in pairs)
    return float(same + SequenceMatcher(None, one, other).ratio())


def _ordinal(number: int) -> str:
    return f"the {ORDINALS[number]} result" if number < len(ORDINALS) else f"result {number + 1}"
