"""A recurrent network that writes: an LSTM learns "The Zen of Python", character by character.

python examples/char_lstm.py [--steps 600] [--device cpu]
"""

import argparse
import codecs
import contextlib
import io

import numpy as np

import xgrad
from xgrad import nn, optim

with contextlib.redirect_stdout(io.StringIO()):
    import this

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--device", default="cpu")
options = parser.parse_args()

text = codecs.decode(this.s, "rot13")
letters = sorted(set(text))
codes = xgrad.asarray(np.array([letters.index(letter) for letter in text]), device=options.device)
LENGTH, HIDDEN = 48, 128


class Writer(nn.Module):
    """A network that returns the logits of the next character, after each given character."""

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(letters), HIDDEN)
        self.lstm = nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, len(letters))

    def forward(self, codes, state=None):
        """Return logits, and the state after the last character."""
        hidden, state = self.lstm(self.letters(codes), state)
        return self.head(hidden), state


xgrad.manual_seed(0)
writer = Writer().to(options.device)
optimizer = optim.Adam(writer.parameters(), lr=5e-3)


@xgrad.capture
def step(codes):
    """Update the network, and return the loss in nats per character."""
    optimizer.zero_grad()
    logits, _ = writer(codes[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, len(letters)), codes[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    return loss


def write(start, count):
    """Return a text that continues the start; each character is drawn by its probability."""
    written, state, codes = start, None, [letters.index(letter) for letter in start]
    with xgrad.no_grad():
        for _ in range(count):
            logits, state = writer(xgrad.asarray([codes], device=options.device), state)
            chances = nn.functional.softmax(2 * logits[0, -1])
            codes = [int(xgrad.random.multinomial(chances, 1)[0])]
            written += letters[codes[0]]
    return written


offsets = xgrad.arange(LENGTH + 1, device=options.device)
for i in range(options.steps):
    starts = xgrad.random.randint(0, len(text) - LENGTH, (16, 1), device=options.device)
    loss = step(codes[starts + offsets])
    if i % max(1, options.steps // 5) == 0 or i == options.steps - 1:
        print(f"step {i}: loss {float(loss):.3f}")
print(write("Beautiful is", 200))
