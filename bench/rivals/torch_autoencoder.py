"""Autoencoder of federated's work for rivals in PyTorch."""

import torch
from torch.nn import functional


class Net(torch.nn.Module):
    """Linear layers with ReLU between them."""

    def __init__(self, layers):
        super().__init__()
        self.linear = torch.nn.ModuleList()
        for kernel, bias in layers:
            linear = torch.nn.Linear(*kernel.shape)
            linear.weight.data = torch.tensor(kernel.T.copy())
            linear.bias.data = torch.tensor(bias)
            self.linear.append(linear)

    def forward(self, x):
        """``float[batch, d] -> float[batch, d]``."""
        for i, linear in enumerate(self.linear):
            x = linear(x)
            x = torch.relu(x) if i + 1 < len(self.linear) else x
        return x

    def layers(self):
        """Returns kernels and biases as given."""
        return [
            (la.weight.detach().numpy().T.copy(), la.bias.detach().numpy().copy())
            for la in self.linear
        ]


def loss(net, x):
    """Returns the mean squared error."""
    return functional.mse_loss(net(x), x)
