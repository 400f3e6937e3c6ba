import Testing
import UploadStorage

@testable import TransferServer

@Suite("The report for /metrics")
struct MetricsReportTests {
    private func report(store: StoreStatistics?) -> MetricsReport {
        var counts = ServerCounts()
        counts.record(.testing("PUT", status: 201, received: 5))
        return MetricsReport(
            counts: counts, store: store, openConnections: 3, maxConnections: 10, isReady: true, droppedLogLines: 7,
            processStart: 12.5,
            version: "1.2.3")
    }

    @Test("Metrics have help and type, counters end in _total, and units are base units")
    func conventions() throws {
        var store = StoreStatistics()
        (store.freeBytes, store.capacityBytes, store.minFreeBytes) = (1, 2, 3)
        let lines = report(store: store).text.split(separator: "\n").map(String.init)
        var families: [String: String] = [:]
        for (help, type) in zip(lines, lines.dropFirst()) where type.hasPrefix("# TYPE ") {
            let words = type.split(separator: " ").map(String.init)
            #expect(help.hasPrefix("# HELP \(words[2]) "), "\(type)")
            #expect(families[words[2]] == nil, "\(words[2]) twice")
            families[words[2]] = words[3]
        }
        #expect(families.count > 25)
        for (name, type) in families {
            #expect(name.hasPrefix("onward_") || name.hasPrefix("process_"), "\(name)")
            #expect(name.hasSuffix("_total") == (type == "counter"), "\(name)")
            #expect(name.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || $0 == "_") }, "\(name)")
            #expect(!["millis", "kilo", "mega"].contains { name.contains($0) }, "\(name)")
        }
        // Each sample belongs to the family above it.
        var family = ""
        for line in lines {
            if line.hasPrefix("# TYPE ") { family = String(line.split(separator: " ")[2]) }
            guard !line.hasPrefix("#") else { continue }
            let name = line.prefix { $0 != "{" && $0 != " " }
            let suffixes = families[family] == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
            #expect(suffixes.contains { name == family + $0 }, "\(line)")
            #expect(Double(line[line.index(after: try #require(line.lastIndex(of: " ")))...]) != nil, "\(line)")
        }
    }

    @Test("The gauges of uploads are omitted until the store has counted its uploads")
    func counting() {
        var store = StoreStatistics()
        store.processing = 2
        store.catalogBytes = 7
        let text = report(store: store).text
        #expect(text.contains("\nonward_uploads{state=\"processing\"} 2\n"))
        #expect(text.contains("\nonward_store_size_bytes{kind=\"catalog\"} 7\n"))
        for label in ["receiving", "complete", "invalid", "files", "uploads"] {
            #expect(!text.contains("=\"\(label)\"}"), "\(label)")
        }
        (store.receiving, store.complete, store.invalid, store.publishedBytes, store.reservedBytes) = (1, 3, 4, 5, 6)
        let counted = report(store: store).text
        for (label, value) in [("receiving", 1), ("complete", 3), ("invalid", 4), ("files", 5), ("uploads", 6)] {
            #expect(counted.contains("=\"\(label)\"} \(value)\n"), "\(label)")
        }
    }

    @Test("Without statistics of the store only the metrics of the store are omitted")
    func withoutStore() {
        let text = report(store: nil).text
        #expect(!text.contains("onward_store_"))
        #expect(!text.contains("onward_uploads{"))
        #expect(text.contains("\nonward_connections 3\n"))
        #expect(text.contains("\nonward_build_info{version=\"1.2.3\"} 1\n"))
        #expect(text.contains("\nprocess_start_time_seconds 12.5\n"))
        #expect(text.contains("\nonward_http_received_bytes_total 5\n"))
    }
}
