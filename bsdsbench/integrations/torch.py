"""One-to-one supervision of edge detectors in PyTorch. Needs torch.

    loss = OneToOneLoss(radius=4, weight=5)
    loss(torch.sigmoid(network(image)), gt).backward()

For arrays without torch, use `bsdsbench.one_to_one_labels`. The benchmark as a metric is in
`bsdsbench.integrations.torchmetrics`, which also needs torchmetrics.
"""

from __future__ import annotations

from typing import Any

try:
    import torch
    from torch.nn.functional import binary_cross_entropy
except ImportError as error:
    raise ImportError(
        "bsdsbench.integrations.torch needs torch: install the extra bsdsbench[torch]; "
        "bsdsbench.one_to_one_labels takes arrays without it"
    ) from error

from bsdsbench.files.arguments import given_word
from bsdsbench.metrics.one_to_one import one_to_one_labels

__all__ = ["OneToOneLoss", "one_to_one_labels"]


class OneToOneLoss(torch.nn.Module):
    """Binary cross entropy with one-to-one labels, computed from each prediction.

    As the published program of MatchED does it: every pixel counts the same, annotators are
    assigned separately, and the losses of pixels, annotators and images are added up. There it is
    the loss of the last, thin output, beside the usual one of the network, and joins in after some
    epochs: labels of a network that predicts nothing yet are the annotations.

    Parameters
    ----------
    radius, weight, delta, metric, threads : various
        As for `one_to_one_labels`. The program trains with delta = 0.01, the paper says 0.8.
    reduction : str
        "sum", or "mean" over all pixels of all annotators.

    References
    ----------
    Cetinkaya, Kalkan and Akbas, MatchED, CVPR 2026, arXiv 2602.20689.

    Examples
    --------
    >>> import torch
    >>> prob = torch.full((1, 1, 8, 8), 0.2, requires_grad=True)
    >>> gt = torch.zeros(1, 2, 8, 8)  # two annotators
    >>> gt[..., 3] = 1
    >>> loss = OneToOneLoss()(prob, gt)
    >>> loss.backward()
    >>> round(loss.item(), 2), bool((prob.grad[..., 3] < 0).all())
    (50.74, True)
    """

    def __init__(
        self,
        radius: float = 4.0,
        weight: float = 5.0,
        delta: float = 0.8,
        *,
        metric: str = "l1",
        reduction: str = "sum",
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self.reduction = given_word(reduction, "reduction", ("sum", "mean"))
        self.rule: dict[str, Any] = {
            "radius": radius,
            "weight": weight,
            "delta": delta,
            "metric": metric,
        }

    def forward(self, prob: Any, gt: Any) -> Any:
        """The loss of probabilities and annotations of the shapes that `one_to_one_labels` takes.

        Parameters
        ----------
        prob : torch.Tensor
            After the sigmoid.
        gt : torch.Tensor or list of torch.Tensor
            Maps of 0 and 1.

        Returns
        -------
        torch.Tensor
            A number.
        """
        labels = one_to_one_labels(prob, gt, **self.rule)
        if not isinstance(labels, list):
            prob, labels = [prob], [labels]
        total = sum(_cross_entropy(*two) for two in zip(prob, labels, strict=True))
        size = sum(label.numel() for label in labels)
        return total / size if self.reduction == "mean" else total

    def extra_repr(self) -> str:
        """The rule, as shown in the repr of a network."""
        return ", ".join(f"{k}={v}" for k, v in {**self.rule, "reduction": self.reduction}.items())


def _cross_entropy(prob: Any, label: Any) -> Any:
    if prob.ndim < label.ndim:  # several annotators
        prob = prob.unsqueeze(-3)
    elif prob.ndim > label.ndim:
        prob = prob.squeeze(-3)
    return binary_cross_entropy(prob.expand_as(label), label, reduction="sum")
