"""Conversion of formulas from TeX to MathML."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

NAME_AFTER_FACTOR = re.compile(
    r"(</(?:mi|mn|mover|mrow|msub|msubsup|msup|mfrac|msqrt)>|&#x00029;</mo>)"
    r"((?:<msub>|<msup>|<msubsup>)?)<mi>([A-Za-z]{2,})</mi>"
)


def mathml(formula: str, display: str = "inline") -> str:
    """Return a formula in TeX as MathML; `display` is "inline" or "block".

    Raises
    ------
    ValueError
        If the formula has an error, or a command or an environment that the converter does not
        know.
    """
    # What a backslash becomes in a string that is not raw.
    if control := re.findall(r"[\x00-\x08\x0b-\x1f]", formula):
        raise ValueError(f"control characters {control}: expected a raw string")
    braces = re.sub(r"\\[{}]", "", formula)
    if missing := braces.count("{") - braces.count("}"):
        raise ValueError(f"{abs(missing)} braces too {'few' if missing < 0 else 'many'}: {{")
    try:
        markup: str = convert(formula, display=display)
    except Exception as error:  # errors of the converter have no common class
        raise ValueError(f"{type(error).__name__} {error}".strip()) from error
    # The converter writes what it does not know as it stands.
    if unknown := re.findall(r"\\\w+", markup) + re.findall("&(?!#)", markup):
        raise ValueError(f"{', '.join(unknown)}: unknown command or environment")
    # Capital Greek letters are upright in TeX.
    markup = re.sub(r"<mi>(?=&#x0039[1-9A-F];|&#x003A[0-9];)", '<mi mathvariant="normal">', markup)
    # TeX has no space between the name of a function and a parenthesis, and a thin one after a
    # factor.
    markup = re.sub(r"<mo>(\w{2,})</mo>", r"<mi>\1</mi>", markup)
    return NAME_AFTER_FACTOR.sub(r'\1\2<mo lspace="0.167em" rspace="0em">\3</mo>', markup)
