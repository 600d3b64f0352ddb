"""What a run gave: the evaluation, its tables, rules of AP, reference methods, comparability."""
