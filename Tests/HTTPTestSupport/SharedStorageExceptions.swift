import TestSupport
import Testing

/// The end-to-end tests that do not run with a ``SharedStorage``, by the reason. An entry is the name of a suite, or of a suite and a
/// function.
package enum SharedStorageExceptions {
    private static let reasons: [String: [String]] = [
        "changes, limits or checks a data directory": [
            "AccessLogTests.causes", "AllowanceTests.removedByHand", "BackupTests", "CheckTests", "DataDirectoryTests",
            "HealthTests.unready", "LostStateTests", "OtherReaderTests",
            "ReplacementTests.shrinking", "StartSizeTests", "StoredFormsTests",
        ],
        "needs the free space of a file system": [
            "AllowanceTests.tooLongForTheDisk", "AllowanceTests.minFreeSpace", "FullDiskTests",
            "HealthCommandTests.noRoom",
            "HealthTests.space", "SessionTests.usage", "StartNotesTests.space",
        ],
        "expects that the clock of the server determines lifetimes, and not the clock of the database": [
            "ClockJumpTests.downtime", "ClockJumpTests.longDowntime",
        ],
        "breaks, delays or counts system calls on files": [
            "FaultTests", "HangingDiskTests", "ListingStreamTests.failure", "RequestCostTests", "SynchronizationTests",
            "UnreadableFileTests",
        ],
        "needs local files: they are handed over by path, sent by the kernel, or need a descriptor each": [
            "GatewayPathHandoverDirectoryTests", "GatewayPathHandoverTests", "ManyUploadsTests.outOfDescriptors",
            "SocketOptionTests",
        ],
        "has longer paths than a shared catalog accepts": ["LongPathTests"],
        "starts several servers itself": [
            "ClusterFaultTests", "ClusterPartitionTests", "ClusterTests", "MigrationTests",
        ],
    ]

    /// The tests that start one server, and not several, by the reason.
    private static let reasonsForOne: [String: [String]] = [
        "makes as many connections as one server accepts": [
            "AccessLogTests.tooMany", "FloodTests.connections", "ServeTests.maxConnections", "SlowClientTests",
        ],
        "limits or observes one process": [
            "FloodTests.heads", "FloodTests.tinyChunks", "UsageTests.printedCommands",
        ],
        "expects that a decision of an application is used again, which each server does separately": [
            "GatewayAuthorizationCachingTests"
        ],
        "expects that a connection to an application is used again, which each server does separately": [
            "GatewayProxyStreamingTests.closedIdleConnection", "GatewayProxyStreamingTests.neverTwice",
        ],
        "resumes a TLS session, which only the same server can do": [
            "TLSPolicyTests.replacedCertificate", "TLSPolicyTests.resumption",
        ],
    ]

    /// All entries.
    package static var names: [String] { reasons.values.flatMap(\.self) + reasonsForOne.values.flatMap(\.self) }

    /// The reason why a test does not run; nil if it runs.
    static func reason(for test: Test) -> String? {
        SharedStorage.isSelected ? reasons.first { lists($0.value, test) }?.key : nil
    }

    /// The number of servers that a test starts.
    static func nodes(for test: Test) -> Int {
        reasonsForOne.values.contains { lists($0, test) } ? 1 : SharedStorage.nodes
    }

    private static func lists(_ names: [String], _ test: Test) -> Bool {
        // The ID is a text such as "EndToEndTests.HealthTests/answers()/HealthTests.swift:10:6".
        let parts = "\(test.id)".split(separator: "/")
        guard let suite = parts[0].split(separator: ".").last, parts.count > 1 else { return false }
        return names.contains(String(suite)) || names.contains("\(suite).\(parts[1].prefix { $0 != "(" })")
    }
}
