"""Counts to numbers: ratios, the precision-recall curve, rules of AP and ODS. No disk."""
