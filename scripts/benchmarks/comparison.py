"""Rows of the result: what was measured in each run, its ratio to a reference, and its target."""
import dataclasses, statistics


@dataclasses.dataclass
class Row:
    benchmark: str
    work: str
    # The values of the runs of Onward. The runs of Onward and of the reference are interleaved, so the values with the same
    # index in `own` and `others` form a pair.
    own: list
    unit: str
    reference: str = ""
    others: list = dataclasses.field(default_factory=list)
    # The target: ">=" or "<=", and a limit of the ratio, or of the value if there is no reference.
    relation: str = ""
    limit: float = None
    # Whether a higher value is better.
    is_rate: bool = False

    @property
    def ratios(self):
        return [own / other for own, other in zip(self.own, self.others) if other]

    @property
    def compared(self):
        """The values to which the target applies."""
        return self.ratios if self.others else self.own

    @property
    def median(self):
        return statistics.median(self.compared)

    @property
    def is_met(self):
        if self.limit is None:
            return None
        return self.median >= self.limit if self.relation == ">=" else self.median <= self.limit

    @property
    def speed(self):
        """How many times as fast or as cheap as the reference; None without a reference."""
        return (self.median if self.is_rate else 1 / self.median) if self.others else None

    def json(self):
        return {
            "benchmark": self.benchmark, "work": self.work, "unit": self.unit, "own": self.own,
            "reference": self.reference or None, "others": self.others, "median": self.median, "min": min(self.compared),
            "max": max(self.compared), "relation": self.relation or None, "limit": self.limit, "met": self.is_met,
        }


def interleave(runs, variants):
    """Calls each of the functions once in each run, in alternating order, and returns the lists of their results."""
    results = {name: [] for name in variants}
    for number in range(runs):
        for name in list(variants)[:: 1 if number % 2 == 0 else -1]:
            results[name].append(variants[name]())
    return results


def column(results, key):
    return [result[key] for result in results]


def best(*lists, is_rate):
    """Returns the best of the values of several servers, for each run."""
    return [(max if is_rate else min)(values) for values in zip(*lists)]
