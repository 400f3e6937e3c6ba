import UploadStorage

/// Metrics in the text format of Prometheus, version 0.0.4
/// (https://prometheus.io/docs/instrumenting/exposition_formats/).
struct Exposition: Sendable {
    static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    enum Kind: String {
        case counter, gauge
    }

    struct Sample {
        let labels: [(name: String, value: String)]
        let value: String

        init(_ labels: [(name: String, value: String)] = [], _ value: some BinaryInteger) {
            self.labels = labels
            self.value = "\(value)"
        }

        init(_ labels: [(name: String, value: String)] = [], _ value: Double) {
            self.labels = labels
            self.value = number(value)
        }
    }

    private(set) var text = ""

    /// Adds a family of samples. Names follow the conventions of Prometheus; each family is added once.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
        begin(name, kind.rawValue, help)
        for sample in samples { line(name, sample.labels, sample.value) }
    }

    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger) {
        add(name, kind, help, [Sample([], value)])
    }

    mutating func add(
        histogram name: String, _ help: String, _ histograms: [(labels: [(name: String, value: String)], Histogram)]
    ) {
        begin(name, "histogram", help)
        for (labels, histogram) in histograms {
            for (bound, count) in histogram.cumulative {
                line(name + "_bucket", labels + [("le", number(bound))], "\(count)")
            }
            line(name + "_bucket", labels + [("le", "+Inf")], "\(histogram.count)")
            line(name + "_sum", labels, number(histogram.sum))
            line(name + "_count", labels, "\(histogram.count)")
        }
    }

    private mutating func begin(_ name: String, _ type: String, _ help: String) {
        text += "# HELP \(name) \(help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n"))\n"
        text += "# TYPE \(name) \(type)\n"
    }

    private mutating func line(_ name: String, _ labels: [(name: String, value: String)], _ value: String) {
        text += name
        if !labels.isEmpty {
            text += "{" + labels.map { "\($0.name)=\"\(escaped($0.value))\"" }.joined(separator: ",") + "}"
        }
        text += " \(value)\n"
    }
}

private func escaped(_ value: String) -> String {
    value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
}

/// The number as text. An integer has no fraction, as is usual for bounds.
private func number(_ value: Double) -> String {
    guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
    return value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
}
