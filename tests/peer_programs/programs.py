"""The programs: where they are, how they are started, and their training steps."""

from __future__ import annotations

from typing import NamedTuple


class Repository(NamedTuple):
    """A repository on GitHub, and the commit that was tried."""

    path: str
    commit: str


REPOSITORIES = {
    "examples": Repository("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8"),
    "pytorch-cifar": Repository(
        "kuangliu/pytorch-cifar", "49b7aa97b0c12fe0d4054e670403a16b6b834ddd"
    ),
    "minGPT": Repository("karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26"),
    "makemore": Repository("karpathy/makemore", "988aa59e4d8fefa526d06f3b453ad116258398d4"),
    "vit-pytorch": Repository("lucidrains/vit-pytorch", "69d24fe9e3024c0d4b02761123b8583a24ebed1e"),
}


class Program(NamedTuple):
    """A program of a repository.

    Its `file` runs with command-line `arguments`, after `substitutions` of lines that load data or
    choose a network. Where a repository has a model and no program that trains it here, `source`
    trains it, in the model's `folder`. `step` defines a function ``step`` with the statements of
    the program's training step, among the names that the step sees in the program, and
    `step_arguments` are its arguments. `uncaptured` is the reason why a step cannot be captured.
    """

    name: str
    repository: str
    file: str = ""
    arguments: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    substitutions: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    source: str = ""
    step: str = ""
    step_arguments: str = "()"
    backward_passes: int = 5
    uncaptured: str = ""


CLASSIFIER = """
def step(data, target):
    optimizer.zero_grad()
    loss = F.nll_loss(model(data), target)
    loss.backward()
    optimizer.step()
    return loss
"""

VAE = """
def step(data):
    optimizer.zero_grad()
    recon_batch, mu, logvar = model(data)
    loss = loss_function(recon_batch, data, mu, logvar)
    loss.backward()
    optimizer.step()
    return loss
"""

DCGAN = """
def step(real_cpu, label, noise):
    netD.zero_grad()
    label.fill_(real_label)
    errD_real = criterion(netD(real_cpu), label)
    errD_real.backward()
    fake = netG(noise)
    label.fill_(fake_label)
    errD_fake = criterion(netD(fake.detach()), label)
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    label.fill_(real_label)
    errG = criterion(netD(fake), label)
    errG.backward()
    optimizerG.step()
    return (errD_real + errD_fake + errG).detach()
"""

REGRESSION = """
def step(batch_x, batch_y):
    fc.zero_grad()
    output = F.smooth_l1_loss(fc(batch_x), batch_y)
    output.backward()
    for param in fc.parameters():
        param.data.add_(-0.1 * param.grad)
    return output
"""

SEQUENCE = """
def step(input, target):
    optimizer.zero_grad()
    loss = criterion(seq(input), target)
    loss.backward()
    return loss
"""

WORDS = """
def step(data, targets, hidden):
    model.zero_grad()
    output, _ = model(data, repackage_hidden(hidden))
    loss = criterion(output, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)
    return loss
"""

WORDS_TRANSFORMER = """
def step(data, targets):
    optimizer.zero_grad()
    output = model(data)
    loss = criterion(output.view(-1, ntokens), targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
    optimizer.step()
    return loss
"""

FORWARD_FORWARD = """
def step(x_pos, x_neg):
    g_pos = layer.forward(x_pos).pow(2).mean(1)
    g_neg = layer.forward(x_neg).pow(2).mean(1)
    loss = torch.log1p(
        torch.exp(torch.cat([-g_pos + layer.threshold, g_neg - layer.threshold]))
    ).mean()
    layer.opt.zero_grad()
    loss.backward()
    layer.opt.step()
    return loss
"""

GRAPH = """
def step(mask_train):
    model.train()
    optimizer.zero_grad()
    output = model(*input)
    loss = criterion(output[mask_train], target[mask_train])
    loss.backward()
    optimizer.step()
    return loss
"""

CRITERION = """
def step(input, target):
    optimizer.zero_grad()
    loss = criterion(model(input), target)
    loss.backward()
    optimizer.step()
    return loss
"""

CIFAR = """
def step(inputs, targets):
    optimizer.zero_grad()
    loss = criterion(net(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss
"""

ADDER = """
model, optimizer, config = trainer.model, trainer.optimizer, trainer.config
def step(x, y):
    logits, loss = model(x, y)
    model.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_norm_clip)
    optimizer.step()
    return loss
"""

MAKEMORE = """
def step(X, Y):
    logits, loss = model(X, Y)
    model.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss
"""

# Models whose repositories train them on data, or with packages, that are too large for this check.
TRAINING = """
import torch
from torch import nn, optim
{imports}

torch.manual_seed(0)
model = {model}
optimizer = optim.{optimizer}
criterion = nn.{criterion}
input = {input}
target = {target}
for _ in range(10):
    optimizer.zero_grad()
    loss = criterion({call}, target)
    loss.backward()
    optimizer.step()
"""

TRANSLATION = """
import torch
from torch import nn, optim
from model import Translator

model = Translator(2, 2, 32, 4, 50, 60, 64, 0.1)
optimizer = optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
criterion = nn.CrossEntropyLoss(ignore_index=1)
source = torch.randint(2, 50, (9, 4))
target = torch.randint(2, 60, (8, 4))
source[6:, 1] = 1
target[5:, 2] = 1
source_mask = torch.zeros((9, 9), dtype=torch.bool)
target_mask = nn.Transformer.generate_square_subsequent_mask(7)
source_padding = (source == 1).transpose(0, 1)
target_padding = (target[:-1] == 1).transpose(0, 1)
for _ in range(10):
    logits = model(
        source, target[:-1], source_mask, target_mask, source_padding, target_padding,
        source_padding,
    )
    optimizer.zero_grad()
    loss = criterion(logits.reshape(-1, logits.shape[-1]), target[1:].reshape(-1))
    loss.backward()
    optimizer.step()
"""

TRANSLATION_STEP = """
def step(source, target):
    logits = model(
        source, target[:-1], source_mask, target_mask, source_padding, target_padding,
        source_padding,
    )
    optimizer.zero_grad()
    loss = criterion(logits.reshape(-1, logits.shape[-1]), target[1:].reshape(-1))
    loss.backward()
    optimizer.step()
    return loss
"""

GAT_DATA = """
def load_graph():
    size = 1700
    features = torch.rand(size, 24)
    labels = torch.randint(0, 5, (size,))
    adj_mat = (torch.rand(size, size) > 0.99).to(torch.int64)
    return features, labels, adj_mat

features, labels, adj_mat = load_graph()
"""


def cifar(name: str, network: str) -> Program:
    """Return the training program of pytorch-cifar with one of the networks in its comments."""
    return Program(
        f"cifar-{name}",
        "pytorch-cifar",
        "main.py",
        stand_ins=("torchvision", "utils"),
        substitutions=()
        if network == "SimpleDLA()"
        else (("net = SimpleDLA()", f"net = {network}"),),
        step=CIFAR,
        step_arguments="(inputs, targets)",
        backward_passes=3,
    )


def makemore(kind: str) -> Program:
    """Return makemore with one of its models."""
    return Program(
        f"makemore-{kind}",
        "makemore",
        "makemore.py",
        ("-i", "{root}/names.txt", "--type", kind, "--device", "cpu"),
        stand_ins=("tensorboard",),
        step=MAKEMORE,
        step_arguments="(X, Y)",
    )


def words(kind: str) -> Program:
    """Return the word language model with one of its recurrent networks."""
    return Program(
        f"words-{kind.lower()}",
        "examples",
        "word_language_model/main.py",
        ("--model", kind, "--data", "words", "--emsize", "20", "--nhid", "20", "--bptt", "7"),
        substitutions=(("corpus = data.Corpus(args.data)", WORDS_DATA),),
        step=WORDS,
        step_arguments="(data, targets, repackage_hidden(hidden))",
    )


WORDS_DATA = """
os.makedirs(args.data, exist_ok=True)
for part in ("train", "valid", "test"):
    with open(os.path.join(args.data, part + ".txt"), "w") as text:
        text.writelines(f"word{i % 13} is word{i * i % 17} of word{i % 7}\\n" for i in range(300))
corpus = data.Corpus(args.data)
"""


def vit(name: str, imports: str, model: str) -> Program:
    """Return a training run of one of the vision transformers."""
    source = TRAINING.format(
        imports=imports,
        model=model,
        optimizer="Adam(model.parameters(), lr=1e-3)",
        criterion="CrossEntropyLoss()",
        input="torch.randn(4, 3, 32, 32)",
        target="torch.randint(0, 10, (4,))",
        call="model(input)",
    )
    return Program(
        f"vit-{name}",
        "vit-pytorch",
        stand_ins=("torchvision",),
        source=source,
        step=CRITERION,
        step_arguments="(input, target)",
    )


VIT_OPTIONS = "image_size=32, patch_size=8, num_classes=10, dim=32, depth=2, heads=2, mlp_dim=64"

PROGRAMS = (
    Program(
        "mnist",
        "examples",
        "mnist/main.py",
        ("--batch-size", "8"),
        stand_ins=("torchvision",),
        step=CLASSIFIER,
        step_arguments="(data, target)",
    ),
    Program(
        "mnist-rnn",
        "examples",
        "mnist_rnn/main.py",
        ("--batch-size", "8"),
        stand_ins=("torchvision",),
        step=CLASSIFIER,
        step_arguments="(data, target)",
    ),
    Program(
        "mnist-forward-forward",
        "examples",
        "mnist_forward_forward/main.py",
        ("--train_size", "24", "--test_size", "24", "--epochs", "4"),
        stand_ins=("torchvision",),
        step=FORWARD_FORWARD,
        step_arguments="(x_pos, x_neg)",
        backward_passes=7,
    ),
    Program(
        "vae",
        "examples",
        "vae/main.py",
        ("--batch-size", "12"),
        stand_ins=("torchvision",),
        step=VAE,
        step_arguments="(data,)",
    ),
    Program(
        "dcgan",
        "examples",
        "dcgan/main.py",
        ("--dataset", "fake", "--ngf", "8", "--ndf", "8", "--batchSize", "2", "--manualSeed", "1"),
        stand_ins=("torchvision",),
        step=DCGAN,
        step_arguments="(real_cpu, label, noise)",
        backward_passes=9,
    ),
    Program(
        "regression",
        "examples",
        "regression/main.py",
        step=REGRESSION,
        step_arguments="(batch_x, batch_y)",
        backward_passes=50,
    ),
    Program(
        "time-sequence",
        "examples",
        "time_sequence_prediction/train.py",
        substitutions=(
            (
                "torch.load('traindata.pt')",
                "np.sin(np.arange(12)[None, :] / 3 + np.arange(6)[:, None])",
            ),
        ),
        step=SEQUENCE,
        step_arguments="(input, target)",
        backward_passes=12,
    ),
    words("LSTM"),
    words("GRU"),
    words("RNN_TANH"),
    Program(
        "words-transformer",
        "examples",
        "word_language_model/main.py",
        (
            *("--model", "Transformer", "--data", "words", "--emsize", "20", "--nhid", "20"),
            *("--bptt", "7", "--use-optimizer", "--lr", "1e-3"),
        ),
        substitutions=(("corpus = data.Corpus(args.data)", WORDS_DATA),),
        step=WORDS_TRANSFORMER,
        step_arguments="(data, targets)",
    ),
    Program(
        "super-resolution",
        "examples",
        "super_resolution/main.py",
        ("--upscale_factor", "2", "--batchSize", "2", "--nEpochs", "4"),
        substitutions=(
            ("from data import get_training_set, get_test_set\n", ""),
            (
                "get_training_set(opt.upscale_factor)",
                "[(torch.rand(1, 9, 9), torch.rand(1, 18, 18))] * 4",
            ),
            ("get_test_set(opt.upscale_factor)", "train_set"),
            ("torch.save(model, model_out_path)", "torch.save(model.state_dict(), model_out_path)"),
        ),
        step=CRITERION,
        step_arguments="(input, target)",
    ),
    Program(
        "graph-attention",
        "examples",
        "gat/main.py",
        ("--hidden-dim", "8", "--num-heads", "2"),
        substitutions=(
            ("import requests\n", ""),
            ("os.path.isfile(os.path.join(path, 'cora.content'))", "True"),
            ("os.path.isfile(os.path.join(path, 'cora.cites'))", "True"),
            (
                "    features, labels, adj_mat = load_cora(device=device)\n",
                GAT_DATA.replace("\n", "\n    ")[:-4],
            ),
        ),
        step=GRAPH,
        step_arguments="(mask_train,)",
    ),
    Program(
        "reinforce",
        "examples",
        "reinforcement_learning/reinforce.py",
        stand_ins=("gymnasium",),
        substitutions=(("torch.from_numpy(state).float()", "torch.from_numpy(state)"),),
        uncaptured="actions are numbers that the environment takes",
    ),
    Program(
        "actor-critic",
        "examples",
        "reinforcement_learning/actor_critic.py",
        stand_ins=("gymnasium",),
        substitutions=(("torch.from_numpy(state).float()", "torch.from_numpy(state)"),),
        uncaptured="actions are numbers that the environment takes",
    ),
    Program(
        "translation",
        "examples",
        folder="language_translation/src",
        source=TRANSLATION,
        step=TRANSLATION_STEP,
        step_arguments="(source, target)",
    ),
    Program(
        "style-network",
        "examples",
        folder="fast_neural_style/neural_style",
        source=TRAINING.format(
            imports="from transformer_net import TransformerNet",
            model="TransformerNet()",
            optimizer="Adam(model.parameters(), lr=1e-3)",
            criterion="MSELoss()",
            input="torch.rand(1, 3, 24, 24)",
            target="torch.rand(1, 3, 24, 24)",
            call="model(input)",
        ),
        step=CRITERION,
        step_arguments="(input, target)",
        backward_passes=3,
    ),
    Program(
        "mingpt-adder",
        "minGPT",
        "projects/adder/adder.py",
        ("--trainer.max_iters=20", "--trainer.batch_size=8"),
        step=ADDER,
        step_arguments="(x, y)",
    ),
    *(makemore(kind) for kind in ("transformer", "mlp", "rnn", "gru", "bow", "bigram")),
    cifar("lenet", "LeNet()"),
    cifar("vgg", "VGG('VGG11')"),
    cifar("resnet", "ResNet18()"),
    cifar("preact-resnet", "PreActResNet18()"),
    cifar("googlenet", "GoogLeNet()"),
    cifar("densenet", "densenet_cifar()"),
    cifar("resnext", "ResNeXt29_2x64d()"),
    cifar("mobilenet", "MobileNet()"),
    cifar("mobilenet-v2", "MobileNetV2()"),
    cifar("senet", "SENet18()"),
    cifar("shufflenet-v2", "ShuffleNetV2(0.5)"),
    cifar("efficientnet", "EfficientNetB0()"),
    cifar("regnet", "RegNetX_200MF()"),
    cifar("dla", "SimpleDLA()"),
    vit("vit", "from vit_pytorch.vit import ViT", f"ViT({VIT_OPTIONS})"),
    vit("simple", "from vit_pytorch.simple_vit import SimpleViT", f"SimpleViT({VIT_OPTIONS})"),
    vit("deep", "from vit_pytorch.deepvit import DeepViT", f"DeepViT({VIT_OPTIONS})"),
)
