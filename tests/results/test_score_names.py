"""Names of scores: what a user writes, and the scores that it means."""

from bsdsbench.results.score_names import full_name, names_meant, score_name


def test_a_name_of_a_score_is_parsed_with_its_part():
    named = score_name("contour.left lung.pooled.iou")
    assert (named.metric, named.part, named.column.key) == ("contour", "left lung", "pooled.iou")


def test_short_names_are_completed():
    assert full_name("ods", ["pixel.ods", "boundary.ods"]) == "boundary.ods"
    assert full_name("mae", ["pixel.mae"]) == "pixel.mae"
    assert full_name("contour.per_class.left lung.dice", []) == "contour.left lung.dice"
    assert full_name("contour.pooled.iou", []) == "contour.pooled.iou"
    hd95 = ["contour.hd95-pooled", "contour.hd95-mean"]
    assert full_name("hd95", hd95) == "contour.hd95-pooled"
    assert full_name("hd", ["contour.hd95-mean"]) == "hd"


def test_a_word_means_the_score_of_every_part_unless_it_names_the_metric():
    known = ["contour.dice", "contour.liver.dice"]
    assert names_meant(["dice"], known) == known
    assert names_meant(["contour.dice"], known) == ["contour.dice"]
    parts = ["contour.liver.dice", "contour.lung.dice"]
    assert names_meant(["dice"], parts) == parts
