"""One-to-one labels of tensors are those of arrays; the loss and its gradient by definition."""

import numpy as np
import pytest

import bsdsbench as bb

torch = pytest.importorskip("torch", reason="torch is not installed")


def batch(annotators=2):
    rng = np.random.default_rng(3)
    prob = torch.from_numpy(rng.random((3, 1, 14, 19)).astype(np.float32))
    gt = torch.from_numpy((rng.random((3, annotators, 14, 19)) < 0.15).astype(np.float32))
    return prob, gt


def test_labels_of_tensors_are_those_of_arrays():
    from bsdsbench.integrations.torch import one_to_one_labels

    assert one_to_one_labels is bb.one_to_one_labels
    prob, gt = batch()
    prob.requires_grad_()
    label = one_to_one_labels(prob, gt)
    assert isinstance(label, torch.Tensor)
    assert (label.shape, label.dtype, label.device) == (gt.shape, prob.dtype, prob.device)
    assert not label.requires_grad
    expected = bb.one_to_one_labels(prob.detach().numpy(), gt.numpy())
    assert abs(expected - gt.numpy()).sum() > 0
    np.testing.assert_array_equal(label.numpy(), expected)
    assert torch.equal(one_to_one_labels(prob[0, 0], gt[0]), label[0])
    ragged = one_to_one_labels(prob, [gt[0], gt[1, :1], gt[2, 0]])
    for found, want in zip(ragged, [label[0], label[1, :1], label[2, 0]], strict=True):
        assert torch.equal(found, want)
    for kind in (torch.float64, torch.float16, torch.bfloat16):
        soft = prob.detach().to(kind)
        assert one_to_one_labels(soft, gt).dtype == kind
        assert torch.equal(one_to_one_labels(soft, gt).float(), one_to_one_labels(soft.float(), gt))


def by_definition(prob, label):
    """Binary cross entropy of every pixel with the label, added up."""
    p, y = prob.astype(np.float64), label.astype(np.float64)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).sum()


def test_the_loss_is_the_cross_entropy_with_each_annotators_labels():
    from bsdsbench.integrations.torch import OneToOneLoss

    prob, gt = batch()
    label = bb.one_to_one_labels(prob.numpy(), gt.numpy(), 3, 20, 0.6)
    expected = by_definition(prob.numpy(), label)
    rule = {"radius": 3, "weight": 20, "delta": 0.6}
    assert OneToOneLoss(**rule)(prob, gt).item() == pytest.approx(expected, rel=1e-5)
    mean = OneToOneLoss(**rule, reduction="mean")(prob, gt).item()
    assert mean == pytest.approx(expected / label.size, rel=1e-5)
    for soft in (prob, prob[:, 0]):
        listed = OneToOneLoss(**rule)(soft, [gt[0], gt[1], gt[2]])
        assert listed.item() == pytest.approx(expected, rel=1e-5)
    first = by_definition(prob[:, 0].numpy(), label[:, 0])
    for one in (gt[:, :1], gt[:, 0]):
        assert OneToOneLoss(**rule)(prob, one).item() == pytest.approx(first, rel=1e-5)
    alone = OneToOneLoss(**rule)(prob[0, 0], gt[0]).item()
    assert alone == pytest.approx(by_definition(prob[0].numpy(), label[0]), rel=1e-5)
    assert "radius=3" in repr(OneToOneLoss(**rule))
    with pytest.raises(bb.DataError, match="reduction 'none': expected one of sum, mean"):
        OneToOneLoss(reduction="none")


def test_the_gradient_takes_the_labels_as_they_are():
    from bsdsbench.integrations.torch import OneToOneLoss

    prob, gt = batch()
    prob.requires_grad_()
    OneToOneLoss()(prob, gt).backward()
    label = bb.one_to_one_labels(prob.detach().numpy(), gt.numpy())
    p = prob.detach().numpy().astype(np.float64)
    expected = ((p - label) / (p * (1 - p))).sum(1, keepdims=True)
    np.testing.assert_allclose(prob.grad.numpy(), expected, rtol=1e-4, atol=1e-4)
