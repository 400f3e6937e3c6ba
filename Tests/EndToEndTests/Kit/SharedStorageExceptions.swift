import TestSupport
import Testing

/// The tests that do not run with a ``SharedStorage``, by the reason. An entry is the name of a suite, or of a suite and a
/// function.
enum SharedStorageExceptions {
    private static let reasons: [String: [String]] = [
        "changes or reads files of the data directory": [
            "AccessLogTests.causes", "AllowanceTests.removedByHand", "BackupTests", "CheckTests", "CrashTests",
            "DataDirectoryTests",
            "DownloadEnduranceTests", "FolderDownloadTests.times", "FolderDownloadTests.twice", "FolderToolTests",
            "FullStateDiskTests", "GatewayCheckProgramTests.leftover", "GatewayCheckProgramTests.scanner",
            "HealthTests.unready", "LargeListingTests", "ListingStreamTests", "ListingTests.nothingElse",
            "LostStateTests", "NameTests.symbolicLinks", "NameTests.traversal", "OtherReaderTests",
            "ReplacementTests.entityTags", "ReplacementTests.shrinking", "RepresentationTests.metadata",
            "RepresentationTests.paths", "RetrievalTests.bytesLost", "ServeTests.directoryTaken", "ServeTests.layout",
            "SingleRangeTests.large", "SoakTests", "StartSizeTests", "StateCommandTests.cancel",
            "StateCommandTests.gone", "StoppingTests.appendAndPlain", "StoppingTests.unfinishedUpload",
            "StoredFormsTests", "TimeLimitTests.otherDownloads", "ToolTests.curl", "ToolTests.curlResuming",
            "UnreadableFileTests", "UploadEnduranceTests",
        ],
        "observes bytes before the server has reported them": [
            "AllowanceTests.quotaOfUnknownLength", "PromptnessTests.smallChunks", "ReachedLengthTests.cut",
            "ReachedLengthTests.killed",
        ],
        "expects a metric that is counted only with a data directory": ["MetricsTests.oneUpload"],
        "needs the free space of a file system": [
            "AllowanceTests.tooLongForTheDisk", "AllowanceTests.minFreeSpace", "FullDiskTests",
            "HealthCommandTests.noRoom",
            "HealthTests.space", "SessionTests.usage", "StartNotesTests.space",
        ],
        "moves the clock further than the object storage accepts": ["ClockJumpTests"],
        "breaks, delays or counts system calls on files": [
            "FaultTests", "GatewayEffectOnceKillTests", "GatewayEventKillTests", "HangingDiskTests", "RequestCostTests",
            "SynchronizationTests",
        ],
        "expects that a list shows which request another process sends": ["GatewayOutcomeTests.inUse"],
        "needs local files for the hand-over of a path": [
            "GatewayPathHandoverDirectoryTests", "GatewayPathHandoverTests",
        ],
        "starts several servers itself": [
            "ClusterFaultTests", "ClusterPartitionTests", "ClusterTests", "MigrationTests",
        ],
    ]

    /// The tests that start one server, and not several, by the reason.
    private static let reasonsForOne: [String: [String]] = [
        "expects that the server has the bytes that its proxy has accepted, or has not sent those that wait in the proxy":
            [
                "InterruptionTests.append", "InterruptionTests.creation", "StoppingTests.download",
                "TimeLimitTests.download",
            ],
        "makes as many connections as one server accepts": [
            "AccessLogTests.tooMany", "FloodTests", "ServeTests.maxConnections", "SlowClientTests",
        ],
        "limits or observes one process": ["ManyUploadsTests.outOfDescriptors", "SocketOptionTests"],
        "resumes a TLS session, which only the same server can do": ["TLSPolicyTests"],
    ]

    /// All entries.
    static var names: [String] { reasons.values.flatMap(\.self) + reasonsForOne.values.flatMap(\.self) }

    /// Why a test does not run; nil if it runs.
    static func reason(for test: Test) -> String? {
        SharedStorage.isSelected ? reasons.first { lists($0.value, test) }?.key : nil
    }

    /// The number of servers that a test starts.
    static func nodes(for test: Test) -> Int {
        reasonsForOne.values.contains { lists($0, test) } ? 1 : SharedStorage.nodes
    }

    private static func lists(_ names: [String], _ test: Test) -> Bool {
        // Such as "EndToEndTests.HealthTests/answers()/HealthTests.swift:10:6".
        let parts = "\(test.id)".split(separator: "/")
        guard let suite = parts[0].split(separator: ".").last, parts.count > 1 else { return false }
        return names.contains(String(suite)) || names.contains("\(suite).\(parts[1].prefix { $0 != "(" })")
    }
}
