"""Panoptic quality as panopticapi's evaluation.py describes it: segment by segment."""


def counted(gt, pred, segments, of_pred):
    """category -> [TP, FP, FN, sum of IoU] of one image.

    gt, pred : (H, W) numbers of segments, 0 is VOID
    segments : the true ones in the order of the file, [(number, category, is a crowd)]
    of_pred  : number -> category
    """
    out = {c: [0, 0, 0, 0.0] for c in {c for _, c, _ in segments} | set(of_pred.values())}
    matched = set()
    for number, category, crowd in segments:
        if crowd:
            continue
        found = False
        for other, its in of_pred.items():
            both = ((gt == number) & (pred == other)).sum()
            union = (gt == number).sum() + (pred == other).sum() - both
            union -= ((gt == 0) & (pred == other)).sum()
            if its == category and both and both / union > 0.5:
                out[category][0] += 1
                out[category][3] += both / union
                matched.add(other)
                found = True
        out[category][2] += not found
    crowds = {category: number for number, category, crowd in segments if crowd}
    for other, its in of_pred.items():
        if other in matched:
            continue
        mine = pred == other
        excused = (mine & (gt == 0)).sum() + (mine & (gt == crowds.get(its, 0)) & (gt > 0)).sum()
        out[its][1] += not excused / mine.sum() > 0.5
    return out
