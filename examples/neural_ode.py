"""A neural ODE: a network learns the right-hand side of a differential equation from a spiral.

`odeint_adjoint` solves the equation. Its backward pass solves the adjoint equation [1], which runs
back in time together with the state. Therefore only the states at the wanted times are saved for
backward, whatever the number of steps.

    python examples/neural_ode.py [--steps 600] [--device cpu] [--plot ode.svg]

[1] R. T. Q. Chen, Y. Rubanova, J. Bettencourt, D. Duvenaud, "Neural ordinary differential
equations", 2018.
"""

import argparse

import xgrad
from xgrad import nn, optim

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--device", default="cpu")
parser.add_argument("--plot", metavar="FILE", help="draw the spiral, by Matplotlib")
options = parser.parse_args()

xgrad.manual_seed(0)
true = xgrad.asarray([[-0.1, 2.0], [-2.0, -0.1]], device=options.device)
first = xgrad.asarray([2.0, 0.0], device=options.device)
times = xgrad.linspace(0.0, 10.0, 401, device=options.device)
spiral = xgrad.odeint(lambda t, y: y**3 @ true, first, times)

network = nn.MLP([2, 32, 2], activation=nn.Tanh).to(options.device)
optimizer = optim.Adam(network.parameters(), lr=0.01)
scheduler = optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=options.steps)


def slope(t, y):
    """Return dy/dt."""
    return network(y**3)


@xgrad.capture
def step(start):
    """Update the network by pieces of the spiral, and return the loss."""
    optimizer.zero_grad()
    # states each five points of the data later, four steps of the method apart
    path = xgrad.odeint_adjoint(
        slope, spiral[start], times[:21:5], method="rk4", options={"steps": 4}
    )
    exact = xgrad.stack([spiral[start + 5 * n] for n in range(1, 5)])
    loss = xgrad.abs(path[1:] - exact).mean()
    loss.backward()
    optimizer.step()
    return loss


for i in range(options.steps):
    loss = step(xgrad.random.randint(0, 380, (32,), device=options.device))
    scheduler.step()
    if i % max(1, options.steps // 5) == 0 or i == options.steps - 1:
        print(f"step {i}: loss {float(loss):.3f}")

with xgrad.no_grad():
    path = xgrad.odeint(slope, first, times)
print(f"distance from the whole spiral: {float(xgrad.abs(path - spiral).mean()):.2f}")

if options.plot:
    import matplotlib.pyplot as plt

    from xgrad.support.plotting import STYLE

    plt.style.use(STYLE)

    # the path turns sharply between the times of the data
    fine = xgrad.linspace(0.0, 10.0, 4001, device=options.device)
    with xgrad.no_grad():
        curves = [
            xgrad.odeint(f, first, fine).cpu().numpy().T for f in (lambda t, y: y**3 @ true, slope)
        ]
    figure, ax = plt.subplots(figsize=(5.6, 5))
    ax.plot(*curves[0], "--", color="C7", label="spiral")
    ax.plot(*curves[1], label="learned")
    ax.plot(*first.cpu().numpy(), "o", color="C1", label="start")
    ax.set(title="solutions from t = 0 to 10", xlabel="y₁", ylabel="y₂", aspect="equal")
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(options.plot)
