"""A small GPT: a transformer learns "The Zen of Python", character by character.

Each character attends to the characters before it. A block is attention and a network of two
layers; both are added to their inputs, which are normalized first.

    python examples/gpt.py [--steps 600] [--device cpu] [--plot gpt.svg]
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
parser.add_argument("--plot", metavar="FILE", help="draw predicted characters, by Matplotlib")
options = parser.parse_args()

text = codecs.decode(this.s, "rot13")
letters = sorted(set(text))
codes = xgrad.asarray(np.array([letters.index(letter) for letter in text]), device=options.device)
LENGTH, WIDTH, HEADS, BLOCKS = 32, 64, 4, 2


class GPT(nn.Module):
    """A network that returns the logits of the next character, after each given character."""

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(letters), WIDTH)
        self.positions = nn.PositionalEncoding(WIDTH, LENGTH, learned=True, batch_first=True)
        block = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, BLOCKS, nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, len(letters))

    def forward(self, codes):
        return self.head(self.blocks(self.positions(self.letters(codes)), is_causal=True))


xgrad.manual_seed(0)
gpt = GPT().to(options.device)
optimizer = optim.Adam(gpt.parameters(), lr=1e-3)


@xgrad.capture
def step(codes):
    """Update the network, and return the loss in nats per character."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(
        gpt(codes[:, :-1]).reshape(-1, len(letters)), codes[:, 1:].reshape(-1)
    )
    loss.backward()
    optimizer.step()
    return loss


def write(written, count):
    """Return a text that continues another; each character is drawn by its probability."""
    for _ in range(count):
        end = [letters.index(letter) for letter in written[-LENGTH:]]
        with xgrad.no_grad():
            logits = gpt(xgrad.asarray([end], device=options.device))
        written += letters[
            int(xgrad.random.multinomial(nn.functional.softmax(2 * logits[0, -1]), 1)[0])
        ]
    return written


offsets = xgrad.arange(LENGTH + 1, device=options.device)
for i in range(options.steps):
    loss = step(
        codes[xgrad.random.randint(0, len(text) - LENGTH, (16, 1), device=options.device) + offsets]
    )
    if i % max(1, options.steps // 5) == 0 or i == options.steps - 1:
        print(f"step {i}: loss {float(loss):.3f}")
print(write("Beautiful is", 200))

if options.plot:
    import matplotlib.pyplot as plt

    from xgrad.support.plotting import STYLE

    plt.style.use(STYLE)

    start = text.index("Beautiful")
    line = codes[start : start + LENGTH]
    with xgrad.no_grad():
        probabilities = nn.functional.softmax(gpt(line[None, :])[0, ...]).cpu().numpy()
    shown = sorted({*text[start : start + LENGTH + 1]})
    figure, ax = plt.subplots(figsize=(6.2, 4.8))
    likely = probabilities[:, [letters.index(letter) for letter in shown]].T
    figure.colorbar(ax.imshow(likely, "Blues", vmin=0, vmax=1, aspect="auto"), ax=ax)
    following = [shown.index(letter) for letter in text[start + 1 : start + LENGTH + 1]]
    ax.plot(following, "o", color="C1", fillstyle="none", label="the character that follows")
    ax.set_xticks(range(LENGTH), text[start : start + LENGTH].replace("\n", "↵").replace(" ", "␣"))
    names = [letter.replace("\n", "↵").replace(" ", "␣") for letter in shown]
    ax.set_yticks(range(len(shown)), names)
    ax.set(title="probability of the next character", xlabel="character read", ylabel="next")
    figure.legend(loc="outside lower center", fontsize=9)
    figure.savefig(options.plot)
