import ConformanceKit
import TestSupport

/// The samples of one answer of `/metrics`, each by its name with its labels, as it stands on the line.
struct MetricSamples {
    let values: [String: Double]

    init(_ text: String) {
        var values: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " ") else { continue }
            values[String(line[..<space])] = Double(line[line.index(after: space)...])
        }
        self.values = values
    }

    /// Zero where there is no such sample, as a counter begins.
    subscript(sample: String) -> Double { values[sample] ?? 0 }

    /// Requests that have ended, but for those that looked at the metrics.
    var requests: Double {
        values.filter { $0.key.hasPrefix("onward_http_requests_total{") && !$0.key.contains("route=\"/metrics\"") }
            .values.reduce(0, +)
    }

    /// Samples of the family that are not zero, by what stands in braces.
    func nonzero(_ family: String) -> [String: Double] {
        var result: [String: Double] = [:]
        for (sample, value) in values where sample.hasPrefix(family + "{") && value != 0 {
            result[String(sample.dropFirst(family.count + 1).dropLast())] = value
        }
        return result
    }
}

extension ServerProcess {
    func metrics() throws -> MetricSamples { MetricSamples(try exchange(.get("/metrics")).text) }

    /// The metrics once they have what is looked for: a request is counted when it has ended, which is after its answer.
    func metrics(when isThere: (MetricSamples) -> Bool) throws -> MetricSamples {
        var last = MetricSamples("")
        let found = try pollUntil(within: .seconds(60)) { () -> MetricSamples? in
            last = try metrics()
            return isThere(last) ? last : nil
        }
        guard let found else { throw WireFailure.timedOut("metrics: \(last.values.filter { $0.value != 0 })") }
        return found
    }
}
