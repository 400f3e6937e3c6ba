import ConformanceKit
import TestSupport

/// The samples of a response of `/metrics`, by their name and labels as in the text.
struct MetricSamples {
    private(set) var values: [String: Double]

    init(_ text: String) {
        var values: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " ") else { continue }
            values[String(line[..<space])] = Double(line[line.index(after: space)...])
        }
        self.values = values
    }

    /// The samples of several servers together: the sums of their counters and connections. Other gauges have the largest
    /// value, because many of them describe the storage that the servers share.
    init(_ servers: [MetricSamples]) {
        let summands = ["_total", "_bucket", "_sum", "_count", "onward_connections"]
        values = servers.reduce(into: [:]) { values, server in
            values.merge(server.values) { sum, value in sum + value }
        }
        for (sample, _) in values where !summands.contains(where: sample.prefix(while: { $0 != "{" }).hasSuffix) {
            values[sample] = servers.compactMap { $0.values[sample] }.max()
        }
    }

    /// The value of a sample; zero if it is missing, as counters start at zero.
    subscript(sample: String) -> Double { values[sample] ?? 0 }

    /// The number of ended requests, without those to `/metrics`.
    var requests: Double {
        values.filter { $0.key.hasPrefix("onward_http_requests_total{") && !$0.key.contains("route=\"/metrics\"") }
            .values.reduce(0, +)
    }

    /// The samples of a family that are not zero, by the text in braces.
    func nonzero(_ family: String) -> [String: Double] {
        var result: [String: Double] = [:]
        for (sample, value) in values where sample.hasPrefix(family + "{") && value != 0 {
            result[String(sample.dropFirst(family.count + 1).dropLast())] = value
        }
        return result
    }
}

extension ServerProcess {
    /// The metrics of all servers.
    func metrics() throws -> MetricSamples {
        MetricSamples(try connectToEach().map { MetricSamples(try $0.exchange(.get("/metrics")).text) })
    }

    /// Waits until the metrics satisfy the condition: a request is counted after its end, which can be after its
    /// response.
    func metrics(when isSatisfied: (MetricSamples) -> Bool) throws -> MetricSamples {
        var last = MetricSamples("")
        let found = try pollUntil(within: .seconds(60)) { () -> MetricSamples? in
            last = try metrics()
            return isSatisfied(last) ? last : nil
        }
        guard let found else { throw WireFailure.timedOut("metrics: \(last.values.filter { $0.value != 0 })") }
        return found
    }
}
